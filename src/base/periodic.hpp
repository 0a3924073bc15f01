// A service that does one thing again and again: every `every`, and earlier when it is woken. The poll loops
// of the node are made of it.
//
//    ┌──▶ wait: the interval is over, or wake_up() ──▶ round() ──┐
//    └────────────────────────────────────────────────────────┘
//
// Promise: rounds never overlap, and a wake-up that comes during a round leads to another one. A round that
// throws is counted in todoke_rounds_failed_total{service}; the next one comes after the interval as always,
// or half a second later at the earliest when it is woken. Of rounds that fail one after the other the log
// tells the first, and when one succeeds again. stop() ends a wait at once; a round that is under way ends by
// itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "base/metrics.hpp"
#include "base/service.hpp"

namespace todoke {

struct PeriodicOptions {
  std::string name;    // of the service
  std::string failed;  // what the log says of a round that failed
  std::chrono::milliseconds every;
  bool begins_at_once = false;  // the first round does not wait
};

// Why a round begins.
enum class RoundCause { time, woken };

class PeriodicService : public Service {
 public:
  [[nodiscard]] std::string_view name() const final { return options_.name; }
  Task<void> start() override { co_return; }
  Task<void> run() override;
  void stop() override;

 protected:
  PeriodicService(const Executor& executor, PeriodicOptions options, metrics::Registry& registry);

  virtual Task<void> round(RoundCause cause) = 0;
  // From anywhere.
  void wake_up() { wake_.set_from_anywhere(); }
  [[nodiscard]] bool stop_asked() const { return stop_asked_.is_set(); }
  // Waits inside of a round; stop() ends it.
  Task<void> pause(std::chrono::nanoseconds time);

 private:
  void succeeded();
  void failed(const std::exception_ptr& failure);

  const PeriodicOptions options_;
  metrics::Counter& failed_;
  std::uint64_t failed_in_a_row_ = 0;
  Signal wake_;
  Signal stop_asked_;
};

}  // namespace todoke
