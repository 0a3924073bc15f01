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

}  // namespace
}  // namespace todoke::outbox
