// How long to wait before the next try: doubles from `first` up to `most`, plus 0 to 20 % so that many
// callers don't wake at once.
#pragma once

#include <algorithm>
#include <chrono>
#include <random>

namespace todoke {

class Backoff {
 public:
  using Duration = std::chrono::milliseconds;

  Backoff(Duration first, Duration most) : first_(first), most_(most), next_(first) {}

  Duration next() {
    const auto base = next_;
    next_ = std::min(next_ * 2, most_);
    std::uniform_int_distribution<Duration::rep> jitter(0, base.count() / 5);
    return base + Duration(jitter(random_));
  }

  void reset() { next_ = first_; }

 private:
  Duration first_;
  Duration most_;
  Duration next_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace todoke
