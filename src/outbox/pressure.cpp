#include "outbox/pressure.hpp"

#include <limits>

namespace todoke::outbox {

int next_pressure(int level, std::int64_t backlog, const PressureThresholds& thresholds) {
  while (level < kPressureMax && backlog >= thresholds.backlog.at(static_cast<std::size_t>(level))) ++level;
  while (level > 0 && backlog * 2 <= thresholds.backlog.at(static_cast<std::size_t>(level - 1))) --level;
  return level;
}

int next_capacity_pressure(int level, std::int64_t share) {
  while (level < kPressureMax && share >= kCapacitySteps.at(static_cast<std::size_t>(level))) ++level;
  while (level > 0 && share <= kCapacitySteps.at(static_cast<std::size_t>(level - 1)) - kCapacityGivenBack)
    --level;
  return level;
}

std::int64_t share_in_use(std::int64_t used, std::int64_t limit) {
  constexpr std::int64_t kThousand = 1'000;
  if (limit <= 0 || used <= 0) return 0;
  // Beyond nine thousand terabytes the product does not fit; a thousandth of that more or less is no matter.
  if (used > std::numeric_limits<std::int64_t>::max() / kThousand)
    return used / std::max<std::int64_t>(1, limit / kThousand);
  return used * kThousand / limit;
}

}  // namespace todoke::outbox
