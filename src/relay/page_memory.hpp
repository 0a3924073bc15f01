// Stored events that clients have asked for and their sockets have not taken, of the whole process. Beyond
// `bytes_max` a connection that holds more than an equal share is closed when it gets another page. So slow
// clients hold what a connection may (client_output.hpp) as long as they are few, and less when they are many.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>

#include "relay/metrics.hpp"

namespace todoke::relay {

class PageMemory {
 public:
  static constexpr std::size_t kBytesMaxDefault = 256 * 1024 * 1024;

  explicit PageMemory(RelayMetrics& metrics, std::size_t bytes_max = kBytesMaxDefault)
      : bytes_max_(bytes_max), gauge_(metrics.page_bytes), dropped_(metrics.pages_dropped) {}

  // A connection that held `held` holds `more` besides. False: too much, the connection is to be closed.
  bool take(std::size_t held, std::size_t more) {
    if (more == 0) return true;
    if (held == 0) ++holders_;
    const auto all = bytes_ += more;
    gauge_.set(static_cast<double>(all));
    const bool is_fair = all <= bytes_max_ || held + more <= bytes_max_ / holders_;
    if (!is_fair) dropped_.add();
    return is_fair;
  }
  // A connection that held `held` gives `less` of it back.
  void give_back(std::size_t held, std::size_t less) {
    if (less == 0) return;
    if (held == less) --holders_;
    gauge_.set(static_cast<double>(bytes_ -= less));
  }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> bytes_ = 0;
  std::atomic<std::size_t> holders_ = 0;
  metrics::Gauge& gauge_;
  metrics::Counter& dropped_;
};

}  // namespace todoke::relay
