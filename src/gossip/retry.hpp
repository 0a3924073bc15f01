// When something that does not work yet is tried again: at once, then after a second, two, four, up to a
// quarter of a minute. Pure, two words: there is one for each topic.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/async.hpp"

namespace todoke::gossip {

class Retry {
 public:
  static constexpr std::chrono::milliseconds kFirst{1'000};
  static constexpr std::chrono::milliseconds kMost{15'000};

  // True: now, and the next time is set.
  bool is_due(SteadyTime now) {
    if (now < next_) return false;
    next_ = now + wait_;
    wait_ = std::min(wait_ * 2, kMost);
    return true;
  }
  // It works: the next failure is met early again.
  void reset() {
    next_ = {};
    wait_ = kFirst;
  }

 private:
  SteadyTime next_{};
  std::chrono::milliseconds wait_ = kFirst;
};

}  // namespace todoke::gossip
