// What every session of a relay shares.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/shared_value.hpp"
#include "net/client_memory.hpp"
#include "net/client_network.hpp"
#include "net/rate_limit.hpp"
#include "net/refusal_log.hpp"
#include "nostr/rules.hpp"
#include "nostr/wire.hpp"
#include "outbox/gossip_port.hpp"
#include "outbox/pressure.hpp"
#include "pg/storage.hpp"
#include "relay/block_book.hpp"
#include "relay/dedupe_counts.hpp"
#include "relay/key_book.hpp"
#include "relay/known_ids.hpp"
#include "relay/metrics.hpp"
#include "relay/rights_book.hpp"
#include "relay/topic_book.hpp"

namespace todoke::relay {

class EphemeralExchange;
class Hub;
class Policy;
class Session;
class Writer;

struct AuthSettings {
  bool challenge_at_connect = true;  // false: when something needs it
  bool required = false;
  std::chrono::sys_seconds enforce_at{};  // as it was set
  // Connections that are older have the grace. Later than enforce_at where it was switched on afterwards.
  SystemTime in_force_at{};
  std::chrono::milliseconds grace{900'000};
  std::chrono::milliseconds timeout{10'000};
};

// What may change while connections are open: one immutable value, replaced as a whole.
struct SessionSettings {
  nostr::RuleSettings rules;
  nostr::MessageLimits limits;
  AuthSettings auth;
  std::string public_host;        // for new connections
  net::NetworkPrefixes prefixes;  // likewise
  double address_factor = 1;      // limits.address_factor
};

struct SessionServices {
  const Clock& clock;
  const SharedValue<SessionSettings>& settings;
  bool search = false;  // NIP-50
  const outbox::Pressure& pressure;
  const pg::Storage& storage;
  TopicBook& topics;
  const BlockBook& blocks;
  const KeyBook& keys;
  RightsBook& rights;
  const KnownIds& known;
  DedupeCounts& duplicates;
  RelayMetrics& metrics;
  Policy& policy;
  Writer& writer;
  Hub& hub;
  std::shared_ptr<net::ClientMemory> pages;
  EphemeralExchange& ephemeral;
  net::RateLimiter& event_rate;
  net::RateLimiter& req_rate;
  net::RateLimiter& close_rate;
  net::RefusalLog& refusals;
  outbox::GossipOut* gossip;                                     // null: there is no bridge
  std::function<void(const std::shared_ptr<Session>&)> on_open;  // on the session's executor
};

}  // namespace todoke::relay
