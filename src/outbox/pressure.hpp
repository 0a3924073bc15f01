// How hard the node is pressed, as one number that every part reads that must react:
//
//   0  normal
//   1  no backfill
//   2  low-priority topics are held
//   3  acceptance is tightened
//
// A step is taken when its threshold is reached, and given back only at half of it, so that it does not
// flutter.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace todoke::outbox {

inline constexpr int kPressureMax = 3;

struct PressureThresholds {
  // Rows that the slowest mandatory consumer is behind.
  std::array<std::int64_t, kPressureMax> backlog{100'000, 500'000, 1'000'000};

  // From log.pressure_rows: the first step, then five and ten times as many.
  static constexpr PressureThresholds from(std::int64_t rows) { return {{rows, 5 * rows, 10 * rows}}; }
};

// Pure: the next level, from the level now and the backlog.
int next_pressure(int level, std::int64_t backlog, const PressureThresholds& thresholds);

// The state that is shared. Thread-safe.
class Pressure {
 public:
  [[nodiscard]] int level() const { return level_.load(std::memory_order_relaxed); }
  void set(int level) { level_.store(level, std::memory_order_relaxed); }

 private:
  std::atomic<int> level_{0};
};

}  // namespace todoke::outbox
