#include "base/periodic.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"

namespace todoke {
namespace {

// A service that every commit wakes does not try as often as commits come while it can't get on.
constexpr std::chrono::milliseconds kRestAfterFailure(500);

}  // namespace

PeriodicService::PeriodicService(const Executor& executor, PeriodicOptions options,
                                 metrics::Registry& registry)
    : options_(std::move(options)),
      failed_(registry
                  .counters("todoke_rounds_failed_total",
                            "Rounds of services that poll which failed; they are repeated.", {"service"})
                  .with({options_.name})),
      wake_(executor),
      stop_asked_(executor) {}

Task<void> PeriodicService::run() {
  bool waits = !options_.begins_at_once;
  while (!stop_asked()) {
    bool woken = false;
    if (waits) woken = co_await wake_.wait_for(options_.every);
    if (stop_asked()) break;
    waits = true;
    wake_.reset();
    const auto done = co_await attempt(round(woken ? RoundCause::woken : RoundCause::time));
    if (done) continue;
    failed_.add();
    log::warning(options_.name, options_.failed, {{"error", describe(done.error())}});
    co_await pause(std::min(options_.every, kRestAfterFailure));
  }
}

void PeriodicService::stop() {
  stop_asked_.set();
  wake_.set();
}

Task<void> PeriodicService::pause(std::chrono::nanoseconds time) {
  co_await stop_asked_.wait_for(time);
}

}  // namespace todoke
