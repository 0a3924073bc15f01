// Time as an argument. Logic that depends on time takes a Clock (or a time point); only main makes a
// SystemClock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/async.hpp"

namespace todoke {

class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual SystemTime now() const = 0;     // wall clock: may jump
  [[nodiscard]] virtual SteadyTime steady() const = 0;  // for durations and deadlines: never goes back
};

// The second that a moment is in: events have no finer time.
inline std::chrono::sys_seconds seconds_of(SystemTime time) {
  return std::chrono::time_point_cast<std::chrono::seconds>(time);
}

// 0 if the clock went back in between.
inline std::int64_t millis_between(SystemTime from, SystemTime to) {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(to - from);
  return std::max<std::int64_t>(0, passed.count());
}

// As statements take it.
inline double seconds_in(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

class SystemClock final : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return std::chrono::system_clock::now(); }
  [[nodiscard]] SteadyTime steady() const override { return std::chrono::steady_clock::now(); }
};

// A clock that a test moves. Starts at a fixed instant, so that what a test prints can be compared.
// Thread-safe.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return SystemTime(kStart + offset_.load() + jump_.load()); }
  [[nodiscard]] SteadyTime steady() const override { return SteadyTime(offset_.load()); }

  void advance(std::chrono::nanoseconds by) { offset_ = offset_.load() + by; }
  // Moves the wall clock alone, as an operator or NTP does.
  void jump(std::chrono::nanoseconds by) { jump_ = jump_.load() + by; }

 private:
  static constexpr std::chrono::nanoseconds kStart = std::chrono::seconds(1'700'000'000);
  std::atomic<std::chrono::nanoseconds> offset_{std::chrono::nanoseconds(0)};
  std::atomic<std::chrono::nanoseconds> jump_{std::chrono::nanoseconds(0)};
};

// A point in (steady) time by which a call must have ended. Every query and every request has one.
class Deadline {
 public:
  static Deadline after(std::chrono::nanoseconds limit) {
    return Deadline(std::chrono::steady_clock::now() +
                    std::chrono::duration_cast<SteadyTime::duration>(limit));
  }
  [[nodiscard]] SteadyTime at() const { return at_; }
  [[nodiscard]] bool passed() const { return std::chrono::steady_clock::now() >= at_; }
  // Never negative.
  [[nodiscard]] std::chrono::nanoseconds left() const {
    auto left = at_ - std::chrono::steady_clock::now();
    return left.count() < 0 ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(left);
  }

 private:
  explicit Deadline(SteadyTime at) : at_(at) {}
  SteadyTime at_;
};

}  // namespace todoke
