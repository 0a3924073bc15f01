#include "relay/relay.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "base/periodic.hpp"
#include "net/client_network.hpp"
#include "net/config.hpp"
#include "net/proxies.hpp"
#include "net/rate_limit.hpp"
#include "net/refusal_log.hpp"
#include "nostr/replies.hpp"
#include "relay/capacity.hpp"
#include "relay/config.hpp"
#include "relay/cost.hpp"
#include "relay/ephemeral.hpp"
#include "relay/eraser.hpp"
#include "relay/event_door.hpp"
#include "relay/gossip_door.hpp"
#include "relay/gossip_store.hpp"
#include "relay/hub.hpp"
#include "relay/info.hpp"
#include "relay/management.hpp"
#include "relay/policy.hpp"
#include "relay/retention.hpp"
#include "relay/session.hpp"
#include "relay/settings.hpp"
#include "relay/writer.hpp"

namespace todoke::relay {
namespace {

using namespace std::chrono_literals;

constexpr int kOk = 200;
constexpr int kTooManyRequests = 429;
// A WebSocket is for asking. So long, in times of server.header_timeout, a client may take to begin: longer
// than one needs to authenticate, or a person to send something from an application that has just been
// opened.
constexpr int kUnusedHeaderTimeouts = 6;
constexpr std::uint16_t kRefusedByPolicy = 1008;
constexpr std::uint16_t kTryAgainLater = 1013;
constexpr double kSecondsPerMinute = 60;
constexpr std::chrono::milliseconds kOpenIndexesMax = 30min;
constexpr std::chrono::milliseconds kAuthCheckEvery = 1s;
// The protocol's answer to a message that is too long is a NOTICE; only far beyond is the connection cut.
constexpr std::int64_t kFrameRoom = 8;

template <class T>
std::size_t size_of(const T& value) {
  return static_cast<std::size_t>(value);
}

// host[:port] of a URL; the text itself where there is no scheme.
std::string authority_of(std::string_view url) {
  if (const auto scheme = url.find("://"); scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return std::string(url.substr(0, url.find('/')));
}

}  // namespace

nostr::RuleSettings rules_from(const Config& config) {
  nostr::RuleSettings rules;
  rules.policy =
      config.get(keys::kTopicPolicy) == "open" ? nostr::TopicPolicy::open : nostr::TopicPolicy::topics;
  rules.reserved_topics = config.get(keys::kReserved);
  rules.future_max = std::chrono::duration_cast<std::chrono::seconds>(config.get(keys::kFutureMax));
  if (const auto past = config.get(keys::kPastMax); past.count() > 0) {
    rules.past_max = std::chrono::duration_cast<std::chrono::seconds>(past);
  }
  rules.difficulty_bits_min = static_cast<unsigned>(config.get(keys::kDifficultyMin));
  rules.public_host = authority_of(config.get(keys::kPublicUrl));
  return rules;
}

nostr::MessageLimits message_limits_from(const Config& config) {
  nostr::MessageLimits limits;
  limits.message_bytes_max = size_of(config.get(keys::kMessageBytesMax));
  limits.event.event_bytes_max = size_of(config.get(keys::kEventBytesMax));
  limits.event.tags_max = size_of(config.get(keys::kTagsMax));
  limits.event.tags_bytes_max = size_of(config.get(keys::kTagsBytesMax));
  limits.filter.filters_max = size_of(config.get(keys::kFiltersMax));
  return limits;
}

TopicSettings topic_settings_from(const Config& config) {
  TopicSettings settings;
  settings.reserved = config.get(keys::kReserved);
  settings.accept_any = config.get(keys::kAcceptTopics) == "any";
  settings.periods = retention_periods_from(config);
  settings.enabled_max = static_cast<std::int32_t>(config.get(keys::kTopicsMax));
  return settings;
}

namespace {

AuthSettings auth_from(const Config& config) {
  AuthSettings auth;
  auth.challenge_at_connect = config.get(keys::kChallenge) == "connect";
  auth.required = config.get(keys::kAuthMode) == "required";
  auth.enforce_at = std::chrono::sys_seconds(std::chrono::seconds(config.get(keys::kEnforceAt)));
  auth.in_force_at = auth.enforce_at;
  auth.grace = config.get(keys::kGrace);
  auth.timeout = config.get(keys::kAuthTimeout);
  return auth;
}

// Switched on or moved while connections are open, it is in force from now on at the earliest: they are older
// than that.
AuthSettings auth_after(const AuthSettings& before, AuthSettings asked, SystemTime now) {
  const bool is_new = !before.required || before.enforce_at != asked.enforce_at;
  asked.in_force_at = is_new ? std::max<SystemTime>(asked.enforce_at, now) : before.in_force_at;
  return asked;
}

ReadLimits read_limits_from(const Config& config) {
  ReadLimits limits;
  limits.limit_default = size_of(config.get(keys::kLimitDefault));
  limits.limit_max = size_of(config.get(keys::kLimitMax));
  return limits;
}

HubOptions hub_options_from(const Config& config, nostr::TopicPolicy policy, pg::ConnectOptions database,
                            std::size_t read_connections) {
  HubOptions options;
  // A read that stands in line gets a connection when its turn comes. COUNTs, which look at all that they
  // count, leave most of them to REQs.
  options.counts_under_way_max = std::max<std::size_t>(1, read_connections * 2 / 5);
  options.reads_under_way_max = std::clamp<std::size_t>(read_connections - options.counts_under_way_max, 1,
                                                        options.reads_under_way_max);
  options.connect = std::move(database);
  options.connect.application_name = "todoke live";
  options.policy = policy;
  options.subscriptions_max = size_of(config.get(keys::kSubscriptionsMax));
  options.query_timeout = config.get(keys::kQueryTimeout);
  options.set_events_max = size_of(config.get(keys::kNegentropyEventsMax));
  // Twice as much hex has to fit into the queue.
  options.set_answer_bytes_max =
      std::min(options.set_answer_bytes_max, size_of(config.get(keys::kSendQueueBytesMax)) / 4);
  if (config.get(net::keys::kRates) == "on") options.read_budget = config.get(keys::kReadBudget);
  options.cache.events_max = size_of(config.get(keys::kCacheEvents));
  options.cache.bytes_max = size_of(config.get(keys::kCacheBytes));
  return options;
}

PolicySettings policy_from(const Config& config) {
  return {config.get(keys::kPolicyCommand), config.get(keys::kPolicyTimeout),
          config.get(keys::kPolicyOnFailure) == "accept"};
}

net::WsOptions ws_options_from(const Config& config) {
  net::WsOptions options;
  options.message_bytes_max = size_of(config.get(keys::kMessageBytesMax) * kFrameRoom);
  options.queue_bytes_max = size_of(config.get(keys::kSendQueueBytesMax));
  options.ping_interval = config.get(keys::kIdleTimeout) * 2 / 5;
  options.idle_timeout = config.get(keys::kIdleTimeout);
  options.message_timeout = config.get(keys::kMessageTimeout);
  options.write_timeout = config.get(keys::kSendTimeout);
  options.compression = config.get(keys::kCompression) == "on";
  return options;
}

net::Rate per_minute(std::int64_t count) {
  return {static_cast<double>(count) / kSecondsPerMinute, static_cast<double>(count)};
}

SessionSettings session_settings_from(const Config& config) {
  return {rules_from(config),         message_limits_from(config),
          auth_from(config),          authority_of(config.get(keys::kPublicUrl)),
          net::prefixes_from(config), static_cast<double>(config.get(keys::kAddressFactor))};
}

// Says why and goes.
class TurnedAway final : public net::WsHandler {
 public:
  TurnedAway(std::uint16_t code, nostr::Reason reason) : code_(code), reason_(reason) {}

  void on_open(const std::shared_ptr<net::WsConnection>& connection) override {
    const auto why = text_of(reason_);
    connection->send_text(nostr::notice_message(why));
    connection->close(code_, why);
  }
  void on_message(net::WsOpcode, std::string_view) override {}
  void on_close(std::uint16_t, std::string_view) override {}

 private:
  const std::uint16_t code_;
  const nostr::Reason reason_;
};

void allow_everybody(net::Response& response) {
  response.headers.set("Access-Control-Allow-Origin", "*");
  response.headers.set("Access-Control-Allow-Headers", "*");
  response.headers.set("Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS");
}

bool asks_for_information(const net::Request& request) {
  return request.headers.joined("Accept").find("application/nostr+json") != std::string::npos;
}

}  // namespace

class Relay {
 public:
  explicit Relay(RelayParts& parts)
      : clock_(parts.clock),
        version_(parts.version),
        pool_(parts.pool),
        policy_(rules_from(parts.config).policy),
        unused_max_(parts.config.get(net::keys::kHeaderTimeout) * kUnusedHeaderTimeouts),
        settings_(std::make_shared<const SessionSettings>(session_settings_from(parts.config))),
        config_(std::make_shared<const Config>(parts.config)),
        search_(parts.search),
        bridge_(parts.gossip),
        metrics_(parts.metrics),
        duplicates_(parts.metrics),
        topics_(parts.executor, topic_settings_from(parts.config), parts.pool, parts.listener, parts.metrics),
        blocks_(parts.executor, parts.pool, parts.listener, parts.metrics),
        keys_(parts.executor, parts.pool, parts.listener, parts.metrics),
        rights_(parts.executor, parts.pool, parts.listener, parts.metrics),
        reader_(parts.read_pool, parts.clock, policy_, read_limits_from(parts.config), parts.search.get()),
        gossip_store_(reader_, parts.read_pool, parts.read_executor),
        hub_(parts.executor, parts.read_executor,
             hub_options_from(parts.config, policy_, parts.database, parts.read_pool.connections_max()),
             reader_, parts.listener, topics_, parts.log, parts.clock, metrics_),
        writer_(parts.executor, WriterOptions{.connect = parts.database, .gossip = parts.gossip.get()},
                parts.clock, metrics_, duplicates_, topics_, hub_, parts.log, parts.storage),
        policy_program_(parts.executor, policy_from(parts.config), parts.clock, parts.metrics),
        ephemeral_(parts.executor, parts.pool, parts.listener, parts.clock, metrics_,
                   [this](LiveEventPtr live) { hub_.ephemeral(std::move(live)); }),
        eraser_(parts.executor, parts.pool, parts.database, hub_, parts.clock, metrics_),
        retention_(
            parts.executor,
            RetentionOptions{.connect = parts.database, .periods = retention_periods_from(parts.config)},
            parts.clock, parts.health, parts.metrics),
        capacity_(parts.executor, capacity_from(parts.config), purge_with(parts.background_pool, parts.clock),
                  topics_, parts.background_pool, parts.pressure, parts.health, parts.metrics),
        event_rate_("event", per_minute(parts.config.get(keys::kEventsPerMinute)), rates_on(parts.config),
                    parts.clock, parts.metrics),
        req_rate_("req", per_minute(parts.config.get(keys::kReqsPerMinute)), rates_on(parts.config),
                  parts.clock, parts.metrics),
        close_rate_("close", per_minute(parts.config.get(keys::kReqsPerMinute)), rates_on(parts.config),
                    parts.clock, parts.metrics),
        connection_rate_("connection", per_minute(parts.config.get(keys::kConnectionsPerMinute)),
                         rates_on(parts.config), parts.clock, parts.metrics),
        refusals_("relay", parts.metrics),
        services_{parts.clock,
                  settings_,
                  search_on(parts),
                  parts.pressure,
                  parts.storage,
                  topics_,
                  blocks_,
                  keys_,
                  rights_,
                  hub_.known(),
                  duplicates_,
                  metrics_,
                  policy_program_,
                  writer_,
                  hub_,
                  pages_,
                  ephemeral_,
                  event_rate_,
                  req_rate_,
                  close_rate_,
                  refusals_,
                  parts.gossip.get(),
                  [this](const std::shared_ptr<Session>& session) { remember(session); }},
        events_(services_, reader_) {
    topics_.hold_new_under(parts.pressure);
    topics_.on_change([this] {
      hub_.topics_changed();
      if (bridge_) bridge_->topics_changed();
    });
    blocks_.on_addresses([this] { each_session([](Session& session) { session.check_address(); }); });
    rights_.on_change([this] { each_session([](Session& session) { session.check_rights(); }); });
  }

  // What holds from now on. One caller at a time.
  void change(const Config& config) {
    auto settings = session_settings_from(config);
    settings.auth = auth_after(settings_.load()->auth, settings.auth, clock_.now());
    settings_.store(std::make_shared<const SessionSettings>(std::move(settings)));
    config_.store(std::make_shared<const Config>(config));
    reader_.set_limits(read_limits_from(config));
    topics_.set_periods(retention_periods_from(config));
    retention_.set_periods(retention_periods_from(config));
    hub_.set_limits(size_of(config.get(keys::kSubscriptionsMax)), config.get(keys::kQueryTimeout),
                    size_of(config.get(keys::kNegentropyEventsMax)));
    event_rate_.set(per_minute(config.get(keys::kEventsPerMinute)), rates_on(config));
    req_rate_.set(per_minute(config.get(keys::kReqsPerMinute)), rates_on(config));
    close_rate_.set(per_minute(config.get(keys::kReqsPerMinute)), rates_on(config));
    connection_rate_.set(per_minute(config.get(keys::kConnectionsPerMinute)), rates_on(config));
    capacity_.set_limits(capacity_from(config));
    policy_program_.set(policy_from(config));
  }

  std::shared_ptr<net::WsHandler> accept(const net::Request& request) {
    if (net::is_forwarded(request.headers) && request.client_ip == request.peer_ip)
      refusals_.forwarded(request.peer_ip);
    if (blocks_.blocks()->has_address(request.client_ip, seconds_of(clock_.now()))) {
      metrics_.addresses_blocked.add();
      return std::make_shared<TurnedAway>(kRefusedByPolicy, nostr::Reason::address_blocked);
    }
    if (!pays_for_connection(request.client_ip))
      return std::make_shared<TurnedAway>(kTryAgainLater, nostr::Reason::rate_limited);
    // Nothing could be stored yet.
    if (!writer_.has_started()) return nullptr;
    return std::make_shared<Session>(services_, request.client_ip, request.headers.get("Host"));
  }

  // Also forgets the sessions that have ended.
  void check_sessions() {
    const bool is_auth_required = settings_.load()->auth.required;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(sessions_, [](const auto& weak) { return weak.expired(); });
    }
    each_session([&](Session& session) {
      session.check_use(unused_max_);
      if (is_auth_required) session.check_auth();
    });
  }

  // What an HTTP request costs, as an ordinary question does.
  std::optional<net::Response> toll_of(const net::Request& request) {
    const auto settings = settings_.load();
    const auto network = net::network_of(request.client_ip, settings->prefixes);
    const auto neighbourhood = net::neighbourhood_of(request.client_ip);
    const auto anonymous = anonymous_of(network);
    const std::array<net::RateLimiter::Charge, 2> charges{
        net::RateLimiter::Charge{network, neighbourhood, settings->address_factor},
        net::RateLimiter::Charge{anonymous, neighbourhood}};
    const auto verdict =
        req_rate_.take(std::span(charges).first(settings->address_factor == 1 ? 1 : 2), cost_of(0));
    if (verdict.allowed) return std::nullopt;
    refusals_.refused("http", request.client_ip, clock_.steady());
    auto response = net::error_response(kTooManyRequests, "RATE_LIMITED", "too many requests of this client");
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(verdict.retry_after).count();
    response.headers.set("Retry-After", std::to_string(seconds));
    allow_everybody(response);
    return response;
  }

  // NIP-86.
  Task<net::Response> manage(const net::Request& request) {
    const auto settings = settings_.load();
    nostr::AuthTarget target;
    target.hosts.push_back(settings->public_host.empty() ? std::string(request.headers.get("Host"))
                                                         : settings->public_host);
    return relay::manage(request, config_.load()->get(keys::kAdmins), std::move(target), pool_, clock_);
  }

  TopicBook& topics() { return topics_; }
  BlockBook& blocks() { return blocks_; }
  KeyBook& keys() { return keys_; }
  RightsBook& rights() { return rights_; }
  Hub& hub() { return hub_; }
  Writer& writer() { return writer_; }
  Policy& policy_program() { return policy_program_; }
  CapacityKeeper& capacity() { return capacity_; }
  EphemeralExchange& ephemeral() { return ephemeral_; }
  Eraser& eraser() { return eraser_; }
  Retention& retention() { return retention_; }
  GossipDoor& gossip() { return gossip_; }
  EventDoor& events() { return events_; }
  GossipStore& gossip_store() { return gossip_store_; }
  [[nodiscard]] nostr::TopicPolicy policy() const { return policy_; }
  [[nodiscard]] std::string information() const {
    return information_document(*config_.load(), version_, clock_.now());
  }

 private:
  bool pays_for_connection(const std::string& ip) {
    const auto settings = settings_.load();
    const auto network = net::network_of(ip, settings->prefixes);
    const auto neighbourhood = net::neighbourhood_of(ip);
    const std::array<net::RateLimiter::Charge, 1> charges{
        net::RateLimiter::Charge{network, neighbourhood, settings->address_factor}};
    if (connection_rate_.take(charges).allowed) return true;
    refusals_.refused("connection", ip, clock_.steady());
    return false;
  }

  void each_session(const std::function<void(Session&)>& call) {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : sessions_) {
      if (const auto session = weak.lock()) call(*session);
    }
  }

  void remember(const std::shared_ptr<Session>& session) {
    const std::lock_guard lock(mutex_);
    sessions_.push_back(session);
  }

  static bool search_on(const RelayParts& parts) {
    return parts.search != nullptr && search_is_on(parts.config);
  }

  static bool rates_on(const Config& config) { return config.get(net::keys::kRates) == "on"; }

  const Clock& clock_;
  const std::string_view version_;
  pg::Pool& pool_;
  const nostr::TopicPolicy policy_;
  const std::chrono::milliseconds unused_max_;
  SharedValue<SessionSettings> settings_;
  SharedValue<Config> config_;  // for NIP-11
  std::shared_ptr<outbox::SearchPort> search_;
  std::shared_ptr<outbox::GossipOut> bridge_;
  RelayMetrics metrics_;
  DedupeCounts duplicates_;
  TopicBook topics_;
  BlockBook blocks_;
  KeyBook keys_;
  RightsBook rights_;
  Reader reader_;
  GossipStore gossip_store_;
  Hub hub_;
  Writer writer_;
  std::shared_ptr<net::ClientMemory> pages_ =
      std::make_shared<net::ClientMemory>(metrics_.page_bytes, metrics_.pages_dropped, kPageBytesMax);
  Policy policy_program_;
  EphemeralExchange ephemeral_;
  Eraser eraser_;
  Retention retention_;
  CapacityKeeper capacity_;
  net::RateLimiter event_rate_;
  net::RateLimiter req_rate_;
  net::RateLimiter close_rate_;  // its own: a client that closes what it has opened may open at the full rate
  net::RateLimiter connection_rate_;
  net::RefusalLog refusals_;
  SessionServices services_;
  GossipDoor gossip_{services_};
  EventDoor events_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Session>> sessions_;
};

namespace {

// Does what must be done before the relay's other services start, and checks the sessions in each round.
class RelayService final : public PeriodicService {
 public:
  RelayService(const Executor& executor, pg::Pool& pool, std::shared_ptr<Relay> relay,
               metrics::Registry& registry)
      : PeriodicService(executor,
                        {.name = "relay", .failed = "sessions were not checked", .every = kAuthCheckEvery},
                        registry),
        pool_(pool),
        relay_(std::move(relay)) {}

  Task<void> start() override {
    if (relay_->policy() == nostr::TopicPolicy::open) {
      co_await ensure_open_indexes(pool_, Deadline::after(kOpenIndexesMax));
    }
  }

 private:
  Task<void> round(RoundCause /*cause*/) override {
    relay_->check_sessions();
    co_return;
  }

  pg::Pool& pool_;
  std::shared_ptr<Relay> relay_;
};

Task<net::Response> information(std::string document) {
  auto response = net::text_response(kOk, std::move(document), "application/nostr+json");
  allow_everybody(response);
  response.headers.set("Vary", "Accept");
  co_return response;
}

Task<net::Response> greeting(std::string_view version) {
  auto response = net::text_response(
      kOk, "todoke " + std::string(version) +
               "\n\nA Nostr relay: connect with a WebSocket client here or at /relay.\nGET with Accept: "
               "application/nostr+json tells its limits, GET /healthz whether it is well.\n");
  allow_everybody(response);
  response.headers.set("Vary", "Accept");
  co_return response;
}

Task<net::Response> manage(std::shared_ptr<Relay> relay, const net::Request& request) {
  auto response = co_await relay->manage(request);
  allow_everybody(response);
  co_return response;
}

Task<net::Response> preflight() {
  net::Response response;
  response.status = 204;
  allow_everybody(response);
  // The one header that * does not stand for.
  response.headers.set("Access-Control-Allow-Headers", "*, Authorization");
  response.headers.set("Allow", "GET, HEAD, POST, OPTIONS");
  co_return response;
}

void add_routes(net::Router& router, const std::shared_ptr<Relay>& relay, const Config& config,
                std::string_view version) {
  router.set_toll([relay](const net::Request& request) { return relay->toll_of(request); });
  for (const auto* path : {"/", "/relay"}) {
    router.add_websocket(
        path, [relay](const net::Request& request) { return relay->accept(request); },
        ws_options_from(config));
    router.add("GET", path, [relay, version](net::Request& request) {
      return asks_for_information(request) ? information(relay->information()) : greeting(version);
    });
    router.add(
        "POST", path, [relay](net::Request& request) { return manage(relay, request); },
        {.body_bytes_max = kManagementBodyMax, .deadline = {}, .content_type = std::string(kManagementType)});
    router.add("OPTIONS", path, [](net::Request&) { return preflight(); });
  }
}

template <class Part>
std::shared_ptr<Service> part_of(const std::shared_ptr<Relay>& relay, Part& part) {
  return {relay, &part};
}

}  // namespace

BuiltRelay build_relay(RelayParts parts) {
  const auto relay = std::make_shared<Relay>(parts);
  add_routes(parts.router, relay, parts.config, parts.version);
  parts.on_change([relay](const Config& config) { relay->change(config); });
  std::vector<std::shared_ptr<Service>> services{
      std::make_shared<RelayService>(parts.executor, parts.pool, relay, parts.metrics),
      part_of(relay, relay->topics()),
      part_of(relay, relay->blocks()),
      part_of(relay, relay->keys()),
      part_of(relay, relay->rights()),
      part_of(relay, relay->hub()),
      part_of(relay, relay->ephemeral()),
      part_of(relay, relay->writer()),
      part_of(relay, relay->policy_program()),
      part_of(relay, relay->eraser()),
      part_of(relay, relay->retention()),
      part_of(relay, relay->capacity())};
  return {std::move(services),
          {relay, &relay->gossip()},
          {relay, &relay->gossip_store()},
          {relay, &relay->events()}};
}

}  // namespace todoke::relay
