#include "outbox/pressure.hpp"

namespace todoke::outbox {

int next_pressure(int level, std::int64_t backlog, const PressureThresholds& thresholds) {
  while (level < kPressureMax && backlog >= thresholds.backlog.at(static_cast<std::size_t>(level))) ++level;
  while (level > 0 && backlog * 2 <= thresholds.backlog.at(static_cast<std::size_t>(level - 1))) --level;
  return level;
}

}  // namespace todoke::outbox
