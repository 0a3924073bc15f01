// How long a worker may trust that a row is its own: by the monotonic clock, from before the claim (or the
// heartbeat) was asked for, so the database's lease always ends later than this one. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/async.hpp"

namespace todoke::queue {

class LeaseClock {
 public:
  // The drift of the two clocks during a lease, and the time that a try needs beside the other side's.
  static constexpr std::chrono::milliseconds kMargin{200};
  static constexpr std::chrono::milliseconds kHeartbeatMost{60'000};

  explicit LeaseClock(std::chrono::milliseconds lease) : lease_(lease) {}

  // Whether work that takes `needed` at most is sure to end while the row is ours.
  [[nodiscard]] bool allows(SteadyTime leased_from, SteadyTime now, std::chrono::milliseconds needed) const {
    return now + needed + kMargin <= leased_from + lease_;
  }
  [[nodiscard]] std::chrono::milliseconds heartbeat_every() const {
    return std::min(kHeartbeatMost, lease_ / 3);
  }
  [[nodiscard]] std::chrono::milliseconds lease() const { return lease_; }

 private:
  std::chrono::milliseconds lease_;
};

}  // namespace todoke::queue
