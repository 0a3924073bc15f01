// The roles, each with the function that builds it, and their table.
#include "app/roles.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "admin/api.hpp"
#include "app/backfill_service.hpp"
#include "app/bootstrap_parts.hpp"
#include "app/bootstrap_source.hpp"
#include "app/topic_ids.hpp"
#include "app/topic_link.hpp"
#include "app/version.hpp"
#include "base/on_loop.hpp"
#include "gossip/bridge.hpp"
#include "gossip/config.hpp"
#include "index/index_consumer.hpp"
#include "index/sweeper.hpp"
#include "net/config.hpp"
#include "orders/intake/api.hpp"
#include "orders/worker/config.hpp"
#include "orders/worker/dispatcher.hpp"
#include "outbox/runner.hpp"
#include "relay/config.hpp"
#include "relay/relay.hpp"
#include "relay/settings.hpp"
#include "users/users.hpp"

namespace todoke::app {
namespace {

// A search result may be a few seconds late; an OK may not.
constexpr std::chrono::seconds kIndexDeferMax(10);
// Connections to other nodes are closed, and the library's threads joined.
constexpr std::chrono::milliseconds kGossipStop(2'500);

// The search index: a consumer of the log.
void build_index_role(NodeParts& parts) {
  outbox::RunnerOptions options;
  options.defer_max = kIndexDeferMax;
  const auto& loop = parts.consumer_executor;
  const auto add = [&](std::shared_ptr<Service> service) {
    parts.add_service(std::make_shared<OnLoop>(loop, std::move(service)));
  };
  add(std::make_shared<outbox::Runner>(loop, std::make_shared<index::IndexConsumer>(), options,
                                       parts.pools.background, parts.listener, parts.log, parts.clock,
                                       parts.metrics));
  add(std::make_shared<index::Sweeper>(loop, index::SweeperOptions(), parts.pools.background, parts.metrics));
}

// The order dispatcher: takes orders and, with outbox.enabled, sends them.
void build_orders_role(NodeParts& parts) {
  // The kill switch is read beside everything that orders do.
  const auto halts = std::make_shared<orders::Halts>(parts.executor, parts.pools.control, parts.listener,
                                                     parts.clock, parts.metrics);
  auto api = orders::build_api({parts.config, parts.clock, parts.executor, parts.pools.orders, parts.listener,
                                parts.database, parts.metrics, parts.public_router,
                                parts.config.get(orders::keys::kAdapter), halts, parts.storage});
  auto dispatcher = orders::build_dispatcher({parts.config, parts.clock, parts.executor, parts.pools.orders,
                                              parts.listener, parts.database, parts.health, parts.metrics,
                                              parts.tracer, halts, api.wake_waiters});
  for (auto& service : dispatcher.services) parts.add_service(std::move(service));
  for (auto& service : api.services) parts.add_service(std::move(service));
  parts.add_service_stopped_first(api.stops_first);
  parts.needs_to_stop(dispatcher.stops_within);
  parts.on_change(dispatcher.on_change);
  parts.on_change(api.on_change);
  parts.on_sighup(api.read_tokens);
}

// The Admin API, on the internal listener.
void build_admin_role(NodeParts& parts) {
  const auto services =
      admin::build_admin({parts.live, parts.clock, parts.executor, parts.pools.control, parts.listener,
                          parts.health, parts.metrics, parts.internal_router, kVersion});
  for (const auto& service : services) parts.add_service(service);
}

// The bridge to the gossip network: part of a relay, on a loop of its own.
struct Gossip {
  std::shared_ptr<gossip::PeerBook> peers;
  std::shared_ptr<gossip::Bridge> bridge;
};

// Nothing where it is off or left out; health says so.
Gossip make_gossip(NodeParts& parts) {
  if (!gossip::is_on(parts.config)) {
    const auto out = gossip::left_out();
    parts.health.report(
        "gossip", false,
        {HealthState::up, out.empty() ? "off" : fmt::format("left out of this build: {}", out)});
    const gossip::GossipMetrics all_zero(parts.metrics);  // a node has the same metrics either way
    return {};
  }
  Gossip made;
  made.peers = std::make_shared<gossip::PeerBook>(parts.gossip_executor, parts.config, parts.pools.control,
                                                  parts.listener, parts.metrics);
  made.bridge = std::make_shared<gossip::Bridge>(gossip::BridgeParts{
      .config = parts.config,
      .clock = parts.clock,
      .executor = parts.gossip_executor,
      .peers = *made.peers,
      .pressure = parts.pressure,
      .health = parts.health,
      .metrics = parts.metrics,
      .folder = parts.folder,
      .message_bytes_max = static_cast<std::size_t>(parts.config.get(relay::keys::kEventBytesMax)),
      .loopback = parts.loopback,
      .rates = parts.config.get(net::keys::kRates) == "on",
  });
  return made;
}

Task<net::Response> answer_json(std::string json) {
  co_return net::json_response(200, std::move(json) + "\n");
}

void add_gossip(NodeParts& parts, const Gossip& gossip, const relay::BuiltRelay& relay) {
  gossip.bridge->attach(relay.gossip, relay.store);
  // It starts after the relay, which takes what it brings, and stops before it.
  parts.add_service(std::make_shared<OnLoop>(parts.gossip_executor, gossip.peers));
  parts.add_service(std::make_shared<OnLoop>(parts.gossip_executor, gossip.bridge));
  parts.needs_to_stop(kGossipStop);
  parts.internal_router.add(
      "GET", "/gossip", [bridge = gossip.bridge](net::Request&) { return answer_json(bridge->info_json()); });
  parts.on_change([gossip](const Config& config) {
    gossip.peers->change(config);
    gossip.bridge->change(config);
  });
}

// What gossip.backfill_from asks for: where there is no bridge, too.
void add_backfill(NodeParts& parts) {
  const auto& loop = parts.gossip_executor;
  const auto backfill = std::make_shared<BackfillService>(
      BackfillParts{parts.config, parts.clock, loop, parts.pools.background, parts.listener, parts.database,
                    parts.storage, parts.pressure, parts.health, parts.metrics});
  parts.add_service(std::make_shared<OnLoop>(loop, backfill));
  parts.on_change([backfill](const Config& config) { backfill->change(config); });
}

// The Nostr relay: takes events, stores them, serves them.
void build_relay_role(NodeParts& parts) {
  const auto gossip = make_gossip(parts);
  const auto& bridge = gossip.bridge;
  relay::RelayParts relay{parts.config,
                          parts.clock,
                          parts.relay_executor,
                          parts.read_executor,
                          parts.pools.control,
                          parts.pools.reads,
                          parts.pools.background,
                          parts.listener,
                          parts.database,
                          parts.log,
                          parts.pressure,
                          parts.storage,
                          parts.search,
                          parts.health,
                          parts.metrics,
                          parts.public_router,
                          kVersion,
                          parts.on_change,
                          bridge};
  auto built = relay::build_relay(std::move(relay));
  for (auto& service : built.services)
    parts.add_service(std::make_shared<OnLoop>(parts.relay_executor, std::move(service)));
  if (bridge) add_gossip(parts, gossip, built);
  add_backfill(parts);
  parts.events = built.events;
  add_bootstrap(parts);
  parts.jobs.add(topic_link_job(parts.pools.background));
}

// What the User API has to know of keys of other rooms.
users::NodeFacts facts_for_users(const Config& config) {
  users::NodeFacts facts;
  facts.public_url = config.get(relay::keys::kPublicUrl);
  facts.network_id = config.get(relay::keys::kNetworkId);
  facts.mapping = topic_mappings(config).front();
  facts.reserved_topics = config.get(relay::keys::kReserved);
  facts.topics_max = config.get(relay::keys::kTopicsMax);
  facts.event = relay::message_limits_from(config).event;
  return facts;
}

// The User API.
void build_users_role(NodeParts& parts) {
  auto built =
      users::build_users({.config = parts.config,
                          .clock = parts.clock,
                          .executor = parts.executor,
                          .pool = parts.pools.reads,
                          .background = parts.pools.background,
                          .background_executor = parts.consumer_executor,
                          .metrics = parts.metrics,
                          .router = parts.public_router,
                          .jobs = parts.jobs,
                          .ports = {.search = parts.search,
                                    .events = parts.events,
                                    .labels = nullptr,
                                    .trust = nullptr,
                                    .bootstrap = std::make_shared<BootstrapDirectory>(parts.pools.reads)},
                          .folder = parts.folder,
                          .version = std::string(kVersion),
                          .facts = facts_for_users});
  for (auto& service : built.services) parts.add_service(std::move(service));
  for (auto& service : built.background_services)
    parts.add_service(std::make_shared<OnLoop>(parts.consumer_executor, std::move(service)));
  parts.on_change(built.on_change);
}

// index-v1 without its version.
std::string_view consumer_stem(std::string_view consumer) {
  const auto digits = consumer.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == consumer.size()) return consumer;
  const auto version = consumer.substr(0, digits + 1);
  return version.ends_with("-v") ? version.substr(0, version.size() - 2) : consumer;
}

}  // namespace

const std::vector<Role>& roles() {
  static const std::vector<Role> kRoles{
      {.name = "admin", .build = build_admin_role},
      {.name = "index", .build = build_index_role, .consumers = {index::kConsumerName}},
      {.name = "orders", .build = build_orders_role},
      {.name = "relay", .build = build_relay_role},
      {.name = "users", .build = build_users_role, .publishes = true},
  };
  return kRoles;
}

const Role* find_role(std::string_view name) {
  const auto found =
      std::find_if(roles().begin(), roles().end(), [name](const Role& role) { return role.name == name; });
  return found == roles().end() ? nullptr : &*found;
}

std::string_view role_of_consumer(std::string_view name) {
  for (const auto& role : roles()) {
    const auto& consumers = role.consumers;
    if (std::find(consumers.begin(), consumers.end(), name) != consumers.end()) return role.name;
  }
  return {};
}

bool is_own_consumer(std::string_view name) {
  return std::any_of(roles().begin(), roles().end(), [name](const Role& role) {
    return std::any_of(role.consumers.begin(), role.consumers.end(),
                       [name](std::string_view own) { return consumer_stem(own) == consumer_stem(name); });
  });
}

std::vector<std::string> all_roles() {
  std::vector<std::string> names;
  for (const auto& role : roles()) names.emplace_back(role.name);
  return names;
}

std::vector<const Role*> build_order(const std::vector<std::string>& names) {
  std::vector<const Role*> ordered;
  std::vector<const Role*> later;
  for (const auto& name : names) {
    const auto* role = find_role(name);
    if (role == nullptr) throw std::invalid_argument("no role " + name);
    (role->publishes ? later : ordered).push_back(role);
  }
  ordered.insert(ordered.end(), later.begin(), later.end());
  return ordered;
}

std::vector<std::string> parse_roles(std::string_view text) {
  std::vector<std::string> names;
  if (text == "none") return names;
  while (true) {
    const auto comma = text.find(',');
    const auto name = std::string(text.substr(0, comma));
    if (find_role(name) == nullptr) {
      throw UserError(fmt::format("--roles: '{}' is no role of this build; there are: none, {}", name,
                                  fmt::join(all_roles(), ", ")));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (comma == std::string_view::npos) return names;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace todoke::app
