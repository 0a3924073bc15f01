// What the handlers of the User API share: the database, what the operator has set, and the ports of other
// rooms. Thread-safe; handlers run on the loops of connections.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/access_token.hpp"
#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/shared_value.hpp"
#include "net/client_network.hpp"
#include "net/message.hpp"
#include "nostr/auth.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/topics.hpp"
#include "outbox/event_port.hpp"
#include "outbox/search_port.hpp"
#include "pg/pool.hpp"
#include "users/sources.hpp"

namespace todoke::users {

// What the node says of itself in keys of other rooms.
struct NodeFacts {
  std::string public_url;  // of the relay, ws:// or wss://; may be empty
  std::string network_id;
  nostr::TopicMapping mapping = nostr::TopicMapping::v1;
  std::vector<std::string> reserved_topics;
  std::int64_t topics_max = 0;
  nostr::EventLimits event;
};

struct Settings {
  NodeFacts node;
  net::NetworkPrefixes prefixes;
  std::int64_t pending_requests_max = 0;
  std::string auto_approve;
  std::chrono::milliseconds trending_window{0};
};

Settings settings_from(const Config& config, NodeFacts node);

// What a call of the database may take.
inline constexpr std::chrono::seconds kCallMax(5);

class Desk {
 public:
  struct Ports {
    std::shared_ptr<outbox::SearchPort> search;
    std::shared_ptr<outbox::EventPort> events;
    std::shared_ptr<LabelSource> labels;
    std::shared_ptr<TrustSource> trust;
    std::shared_ptr<BootstrapSource> bootstrap;
  };

  // Null ports: what needs them answers 503.
  Desk(pg::Pool& pool, const Clock& clock, Settings settings, Ports ports);

  // One statement. Throws what the database throws.
  Task<pg::Result> ask(pg::Statement statement, pg::Params params) const;

  [[nodiscard]] std::shared_ptr<const Settings> settings() const { return settings_.load(); }
  void set_settings(Settings settings);
  // Null until the service has started.
  [[nodiscard]] std::shared_ptr<const api::AccessTokens> tokens() const { return tokens_.load(); }
  void set_tokens(api::AccessTokens tokens);
  [[nodiscard]] const Ports& ports() const { return ports_; }
  [[nodiscard]] SystemTime now() const { return clock_.now(); }

  // By which names a client may mean this node, as the relay's AUTH has it.
  [[nodiscard]] nostr::AuthTarget target_of(const net::Request& request) const;
  // The URL of a path below the first base of the API; without a public URL the path alone.
  [[nodiscard]] std::string url_of(std::string_view path) const;

 private:
  pg::Pool& pool_;
  const Clock& clock_;
  SharedValue<Settings> settings_;
  SharedValue<api::AccessTokens> tokens_{nullptr};
  const Ports ports_;
};

using DeskPtr = std::shared_ptr<Desk>;

// Below these every route is; the first is the document's.
inline constexpr std::string_view kApiBase = "/api/v1";
inline constexpr std::string_view kSeedBase = "/v1";

}  // namespace todoke::users
