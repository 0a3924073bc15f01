// Lets a fixed number of lines of one kind through each second and counts the others, so that the next line
// can say how many were left out. Not thread-safe. Costs a comparison.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/async.hpp"

namespace todoke {

class LogRate {
 public:
  explicit LogRate(std::uint64_t per_second_max) : per_second_max_(per_second_max) {}

  // Whether a line may be written now; false counts it as left out.
  bool allows(SteadyTime now) {
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      written_ = 0;
    }
    if (written_ < per_second_max_) {
      ++written_;
      return true;
    }
    ++left_out_;
    return false;
  }
  // Since the last call.
  std::uint64_t take_left_out() { return std::exchange(left_out_, 0); }

 private:
  std::uint64_t per_second_max_;
  SteadyTime second_{};
  std::uint64_t written_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace todoke
