#include "net/watchdog.hpp"

#include <utility>

#include <boost/asio/steady_timer.hpp>

namespace todoke::net {

namespace {
constexpr SteadyTime kNever = SteadyTime::max();
}

struct Watchdog::State : std::enable_shared_from_this<State> {
  State(const Executor& executor, std::function<void()> b) : timer(executor), bark(std::move(b)) {}

  void wait_until(SteadyTime at) {
    waits_for = at;
    timer.expires_at(at);
    timer.async_wait([self = shared_from_this(), at](boost::system::error_code error) {
      // A wait that was replaced by an earlier one ends cancelled, or has fired already: neither counts.
      if (!error && self->waits_for == at) self->wake();
    });
  }

  void wake() {
    waits_for = kNever;
    if (!bark || due == kNever) return;
    if (std::chrono::steady_clock::now() < due) return wait_until(due);
    due = kNever;
    const auto call = bark;  // the bark may destroy the watchdog
    call();
  }

  asio::steady_timer timer;
  std::function<void()> bark;
  SteadyTime due = kNever;
  SteadyTime waits_for = kNever;  // what the timer is set to
};

Watchdog::Watchdog(const Executor& executor, std::function<void()> bark)
    : state_(std::make_shared<State>(executor, std::move(bark))) {}

Watchdog::~Watchdog() {
  state_->bark = nullptr;
  state_->timer.cancel();
}

void Watchdog::arm(std::chrono::nanoseconds limit) {
  state_->due = std::chrono::steady_clock::now() + std::chrono::duration_cast<SteadyTime::duration>(limit);
  if (state_->due < state_->waits_for) state_->wait_until(state_->due);
}

void Watchdog::disarm() {
  state_->due = kNever;
}

}  // namespace todoke::net
