// What every session of a relay shares.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "net/rate_limit.hpp"
#include "nostr/rules.hpp"
#include "nostr/wire.hpp"
#include "outbox/pressure.hpp"
#include "relay/dedupe_counts.hpp"
#include "relay/known_ids.hpp"
#include "relay/metrics.hpp"
#include "relay/topic_book.hpp"

namespace todoke::relay {

class EphemeralExchange;
class Hub;
class Session;
class Writer;

struct AuthSettings {
  bool required = false;
  std::chrono::sys_seconds enforce_at{};
  std::chrono::milliseconds grace{900'000};
  std::chrono::milliseconds timeout{10'000};
};

struct SessionServices {
  const Clock& clock;
  nostr::RuleSettings rules;
  nostr::MessageLimits limits;
  AuthSettings auth;
  bool search = false;  // NIP-50
  std::string public_host;
  const outbox::Pressure& pressure;
  TopicBook& topics;
  KnownIds& known;
  DedupeCounts& duplicates;
  RelayMetrics& metrics;
  Writer& writer;
  Hub& hub;
  EphemeralExchange& ephemeral;
  net::RateLimiter& event_rate;
  net::RateLimiter& req_rate;
  net::RateLimiter& close_rate;
  std::function<void(const std::shared_ptr<Session>&)> on_open;  // on the session's executor
};

}  // namespace todoke::relay
