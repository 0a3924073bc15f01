// What a listener counts. Label sets are bounded: routes are patterns, methods a fixed list, statuses their
// class.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "net/router.hpp"

namespace todoke::net {

// Why a connection is not served.
enum class Refusal { connections_max, connections_per_address, silent, files, handshakes };
inline constexpr std::array<std::string_view, 5> kRefusals{"connections_max", "connections_per_address",
                                                           "silent", "files", "handshakes"};
constexpr std::string_view to_string(Refusal why) {
  return kRefusals[static_cast<std::size_t>(why)];
}

class ServerMetrics {
 public:
  ServerMetrics(metrics::Registry& registry, std::string listener, const Router& router);

  // `route` null: none matched. Series are looked up once and kept, so counting a request takes no lock.
  // Thread-safe.
  void count(const Route* route, std::string_view method, int status, double seconds);
  void refused(Refusal why) { refused_[static_cast<std::size_t>(why)]->add(); }
  void host_refused() { hosts_refused_.add(); }
  void limited() { limited_.add(); }

  metrics::Gauge& connections;
  metrics::Gauge& unfinished_bytes;
  metrics::Counter& unfinished_dropped;

 private:
  static constexpr std::size_t kMethods = 8;
  static constexpr std::size_t kClasses = 5;
  struct RouteSeries {
    std::string route;
    metrics::Histogram* seconds = nullptr;
    std::array<std::atomic<metrics::Counter*>, kMethods * kClasses> requests{};
  };

  std::string listener_;
  metrics::Family<metrics::Counter>& requests_;
  std::array<metrics::Counter*, kRefusals.size()> refused_{};
  metrics::Counter& hosts_refused_;
  metrics::Counter& limited_;
  std::vector<RouteSeries> series_;  // by the route's index; the last is that of no route
};

// TLS handshakes that failed: each is counted, and the log tells of them once a minute at most. On a public
// port some always do. Thread-safe.
class HandshakeFailures {
 public:
  HandshakeFailures(metrics::Registry& registry, std::string listener);
  void note(std::string_view reason);

 private:
  std::string listener_;
  metrics::Counter& count_;
  std::mutex mutex_;
  std::uint64_t untold_ = 0;  // since the last line
  SteadyTime told_at_{};
};

}  // namespace todoke::net
