#include "queue/breaker.hpp"

#include <algorithm>
#include <utility>

namespace todoke::queue {

std::size_t Breaker::allowed(SteadyTime now, std::size_t concurrency) {
  if (state_ == State::open && now >= probe_at_) state_ = State::probing;
  switch (state_) {
    case State::closed:
      return concurrency;
    case State::open:
      return 0;
    case State::probing:
      return 1;
    case State::ramping:
      return std::min(ramp_, concurrency);
  }
  return concurrency;
}

Breaker::Ruling Breaker::ended(JobId job, Reach reach, SteadyTime now, std::size_t concurrency) {
  if (reach == Reach::reached) {
    in_a_row_.clear();
    if (state_ == State::open) {
      // A try that began before the breaker opened has got through: probe at once.
      probe_at_ = now;
    } else if (state_ != State::closed) {
      ramp_ = state_ == State::probing ? 2 : ramp_ * 2;
      state_ = State::ramping;
    }
    if (state_ == State::ramping && ramp_ >= concurrency) {
      state_ = State::closed;
      pause_ = {};
    }
    return {};
  }
  if (state_ != State::closed) {
    if (state_ != State::open) open(now);
    return {.counts = false, .refunds = {}};
  }
  ++in_a_row_[job];
  if (in_a_row_.size() < options_.jobs_to_open) return {};
  open(now);
  auto refunds = std::exchange(in_a_row_, {});
  if (--refunds[job] == 0) refunds.erase(job);
  return {.counts = false, .refunds = std::move(refunds)};
}

void Breaker::open(SteadyTime now) {
  pause_ = pause_.count() == 0 ? options_.pause_first : std::min(pause_ * 2, options_.pause_most);
  probe_at_ = now + pause_;
  state_ = State::open;
}

std::string_view to_string(Breaker::State state) {
  switch (state) {
    case Breaker::State::closed:
      return "closed";
    case Breaker::State::open:
      return "open";
    case Breaker::State::probing:
      return "probing";
    case Breaker::State::ramping:
      return "ramping";
  }
  return "";
}

}  // namespace todoke::queue
