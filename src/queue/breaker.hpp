// Stops work during an outage of the other side instead of burning the attempts of every row.
//
//   closed   5 different jobs in a row found nobody: open
//   open     after a pause: probing
//   probing  with one job; reached: ramping, found nobody: open
//   ramping  twice as many with each that got through; all of them: closed, found nobody: open
//
// One bad job alone can't open it, however often it fails. While it is not closed failures don't count
// against their jobs, and neither do those that opened it. Pure: takes the time as an argument. Each worker
// has its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "queue/ticket.hpp"

namespace todoke::queue {

struct BreakerOptions {
  std::size_t jobs_to_open = 5;
  std::chrono::milliseconds pause_first{1'000};
  // The end of an outage of any length is noticed within this time and one try.
  std::chrono::milliseconds pause_most{15'000};
};

// Whether a try reached the other side.
enum class Reach { reached, unreachable };

class Breaker {
 public:
  enum class State { closed, open, probing, ramping };

  explicit Breaker(BreakerOptions options = {}) : options_(options) {}

  // How many tries may be under way now, including those that already are.
  std::size_t allowed(SteadyTime now, std::size_t concurrency);

  struct Ruling {
    bool counts = true;  // against the job that has just ended
    // The breaker has just opened: so many tries of these jobs have been counted and should not have been.
    std::map<JobId, int> refunds;
  };
  Ruling ended(JobId job, Reach reach, SteadyTime now, std::size_t concurrency);

  [[nodiscard]] State state() const { return state_; }
  // When a probe may go out; only while open.
  [[nodiscard]] SteadyTime probe_at() const { return probe_at_; }

 private:
  void open(SteadyTime now);

  BreakerOptions options_;
  State state_ = State::closed;
  std::map<JobId, int> in_a_row_;  // tries since the last one that reached somebody; jobs_to_open at most
  std::chrono::milliseconds pause_{0};
  SteadyTime probe_at_{};
  std::size_t ramp_ = 1;
};

std::string_view to_string(Breaker::State state);

}  // namespace todoke::queue
