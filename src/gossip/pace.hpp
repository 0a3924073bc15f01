// An even pace: so many a second, with a twentieth of a second's worth at once. Pure.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/async.hpp"

namespace todoke::gossip {

class Pace {
 public:
  explicit Pace(double per_second) { set(per_second); }

  void set(double per_second) {
    per_second_ = per_second;
    burst_ = std::max(1.0, per_second / kBurstsPerSecond);
    tokens_ = std::min(tokens_, burst_);
  }

  bool take(SteadyTime now) {
    const auto passed = std::chrono::duration<double>(now - at_).count();
    tokens_ = std::clamp(tokens_ + passed * per_second_, 0.0, burst_);
    at_ = now;
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }
  void give_back() { tokens_ += 1; }

 private:
  static constexpr double kBurstsPerSecond = 20;
  double per_second_ = 0;
  double burst_ = 1;
  double tokens_ = 1;
  SteadyTime at_{};
};

}  // namespace todoke::gossip
