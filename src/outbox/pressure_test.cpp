#include "outbox/pressure.hpp"

#include <gtest/gtest.h>

namespace todoke::outbox {
namespace {

constexpr PressureThresholds kThresholds{{100, 500, 1'000}};

TEST(Pressure, RisesWithTheBacklogSeveralStepsAtOnceIfNeedBe) {
  EXPECT_EQ(next_pressure(0, 99, kThresholds), 0);
  EXPECT_EQ(next_pressure(0, 100, kThresholds), 1);
  EXPECT_EQ(next_pressure(1, 500, kThresholds), 2);
  EXPECT_EQ(next_pressure(0, 5'000, kThresholds), 3);
}

TEST(Pressure, FallsOnlyAtHalfOfTheThreshold) {
  EXPECT_EQ(next_pressure(1, 51, kThresholds), 1);
  EXPECT_EQ(next_pressure(1, 50, kThresholds), 0);
  EXPECT_EQ(next_pressure(3, 501, kThresholds), 3);
  EXPECT_EQ(next_pressure(3, 500, kThresholds), 2);
  EXPECT_EQ(next_pressure(3, 0, kThresholds), 0);
}

TEST(CapacityPressure, RisesWithTheShareInUse) {
  EXPECT_EQ(next_capacity_pressure(0, 849), 0);
  EXPECT_EQ(next_capacity_pressure(0, 850), 1);
  EXPECT_EQ(next_capacity_pressure(1, 925), 2);
  EXPECT_EQ(next_capacity_pressure(2, 999), 2);
  EXPECT_EQ(next_capacity_pressure(0, 1'000), 3);
}

TEST(CapacityPressure, FallsOnlyFivePointsBelowTheStep) {
  EXPECT_EQ(next_capacity_pressure(3, 951), 3);
  EXPECT_EQ(next_capacity_pressure(3, 950), 2);
  EXPECT_EQ(next_capacity_pressure(2, 876), 2);
  EXPECT_EQ(next_capacity_pressure(2, 875), 1);
  EXPECT_EQ(next_capacity_pressure(1, 801), 1);
  EXPECT_EQ(next_capacity_pressure(1, 800), 0);
  EXPECT_EQ(next_capacity_pressure(3, 0), 0);
}

TEST(CapacityPressure, StaysWhereItIsWhenNothingChanges) {
  for (int level = 0; level <= kPressureMax; ++level) {
    for (std::int64_t share = 0; share <= 1'100; ++share) {
      const auto next = next_capacity_pressure(level, share);
      EXPECT_EQ(next_capacity_pressure(next, share), next) << level << " at " << share;
    }
  }
}

TEST(CapacityPressure, AShareIsInThousandthsOfTheLimit) {
  EXPECT_EQ(share_in_use(850, 1'000), 850);
  EXPECT_EQ(share_in_use(2, 1), 2'000);
  EXPECT_EQ(share_in_use(5, 0), 0);  // no limit
  EXPECT_EQ(share_in_use(1LL << 62, 1LL << 62), 1'000);
}

TEST(PressureState, TheLargerInputCountsAndNeitherMovesTheOther) {
  Pressure pressure;
  pressure.set(PressureInput::backlog, 1);
  pressure.set(PressureInput::capacity, 3);
  EXPECT_EQ(pressure.level(), 3);
  EXPECT_EQ(pressure.of(PressureInput::backlog), 1);
  pressure.set(PressureInput::capacity, 0);
  EXPECT_EQ(pressure.level(), 1);
}

}  // namespace
}  // namespace todoke::outbox
