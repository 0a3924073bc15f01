// What the log says of refused clients: a line a second at most, with the client's address cut to its network
// and how many were left out. And one thing that the refusals give away: where most of them hit one peer that
// names other clients (X-Forwarded-For) and is no listed proxy, all clients behind it count as one; a line
// says so every ten minutes, and todoke_proxy_suspected_total counts (`todoke doctor` looks at it). Anybody
// can send such a header, so this is a hint and has no other effect.
//
// Time is an argument. Bounded: two addresses. Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "base/log_rate.hpp"
#include "base/metrics.hpp"

namespace todoke::net {

class RefusalLog {
 public:
  // In a window of a minute: fewer refusals say nothing.
  static constexpr std::uint64_t kSuspicionMin = 20;

  // `what` names the part of the node in its lines.
  RefusalLog(std::string what, metrics::Registry& registry);

  // A request of `peer_ip`, which is no listed proxy, names another client.
  void forwarded(std::string_view peer_ip);
  // `why` is a short word such as `connections_max`.
  void refused(std::string_view why, std::string_view client_ip, SteadyTime now);

 private:
  bool is_suspicious(std::string_view client_ip, SteadyTime now);

  const std::string what_;
  metrics::Counter& suspected_;
  std::mutex mutex_;
  LogRate lines_{1};
  // The peer that most forwarded requests came from (Boyer and Moore's majority vote).
  std::string forwarder_;
  std::uint64_t votes_ = 0;
  SteadyTime window_began_{};
  std::uint64_t refusals_ = 0;
  std::uint64_t of_forwarder_ = 0;
  SteadyTime suspected_at_{};
};

}  // namespace todoke::net
