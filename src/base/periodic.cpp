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
  auto wait = options_.begins_at_once ? std::chrono::milliseconds(0) : options_.every;
  while (!stop_asked()) {
    const bool woken = co_await wake_.wait_for(wait);
    if (stop_asked()) break;
    wake_.reset();
    wait = options_.every;
    const auto done = co_await attempt(round(woken ? RoundCause::woken : RoundCause::time));
    if (done) {
      succeeded();
      continue;
    }
    failed(done.error());
    const auto rest = std::min(options_.every, kRestAfterFailure);
    co_await pause(rest);
    wait -= rest;
  }
}

void PeriodicService::succeeded() {
  const auto failures = std::exchange(failed_in_a_row_, 0);
  if (failures > 0) log::info(options_.name, "works again", {{"failed_rounds", failures}});
}

void PeriodicService::failed(const std::exception_ptr& failure) {
  failed_.add();
  if (++failed_in_a_row_ == 1) log::warning(options_.name, options_.failed, {{"error", describe(failure)}});
}

void PeriodicService::stop() {
  stop_asked_.set();
  wake_.set();
}

Task<void> PeriodicService::pause(std::chrono::nanoseconds time) {
  co_await stop_asked_.wait_for(time);
}

}  // namespace todoke
