// How hard the node is pressed, as one number. Every part that must react reads it:
//
//   0  normal
//   1  no backfill
//   2  low-priority topics are held
//   3  by backlog: acceptance is tightened; by capacity: the oldest events go (relay/capacity.hpp)
//
// Two inputs press, each with steps of its own: how far the slowest mandatory consumer is behind, and how
// much of what the node may keep is in use. The larger step counts; of the third only what its own input asks
// for happens.
//
// A step is taken when its threshold is reached, and given back only well below it, so that it does not
// flutter: a backlog at half of the threshold, a share of the capacity five points below it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace todoke::outbox {

inline constexpr int kPressureMax = 3;

enum class PressureInput : std::uint8_t { backlog, capacity };
inline constexpr std::size_t kPressureInputs = 2;

struct PressureThresholds {
  // Rows that the slowest mandatory consumer is behind.
  std::array<std::int64_t, kPressureMax> backlog{100'000, 500'000, 1'000'000};

  // From log.pressure_rows: the first step, then five and ten times as many.
  static constexpr PressureThresholds from(std::int64_t rows) { return {{rows, 5 * rows, 10 * rows}}; }
};

// Shares of the capacity, in thousandths. The first leaves time to make room by hand: at a steady rate a node
// that took a month to fill 85 % reaches the third five days later. Events go only when all of it is in use.
inline constexpr std::array<std::int64_t, kPressureMax> kCapacitySteps{850, 925, 1'000};
inline constexpr std::int64_t kCapacityGivenBack = 50;

// Pure: the next level, from the level now and the backlog.
int next_pressure(int level, std::int64_t backlog, const PressureThresholds& thresholds);

// Pure: the same from the share of the capacity that is in use, in thousandths.
int next_capacity_pressure(int level, std::int64_t share);

// Thousandths of `limit`, rounded down; none without a limit (0).
std::int64_t share_in_use(std::int64_t used, std::int64_t limit);

// The state that is shared. Thread-safe.
class Pressure {
 public:
  [[nodiscard]] int level() const {
    return std::max(of(PressureInput::backlog), of(PressureInput::capacity));
  }
  [[nodiscard]] int of(PressureInput input) const { return at(input).load(std::memory_order_relaxed); }
  void set(PressureInput input, int level) { at(input).store(level, std::memory_order_relaxed); }

  // All of the capacity is in use, and nothing may be purged: the node takes no event.
  [[nodiscard]] bool is_node_full() const { return is_node_full_.load(std::memory_order_relaxed); }
  void set_node_full(bool full) { is_node_full_.store(full, std::memory_order_relaxed); }

 private:
  [[nodiscard]] const std::atomic<int>& at(PressureInput input) const {
    return levels_.at(static_cast<std::size_t>(input));
  }
  std::atomic<int>& at(PressureInput input) { return levels_.at(static_cast<std::size_t>(input)); }

  std::array<std::atomic<int>, kPressureInputs> levels_{};
  std::atomic<bool> is_node_full_{false};
};

}  // namespace todoke::outbox
