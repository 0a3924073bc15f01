#include "queue/lease_clock.hpp"

#include <gtest/gtest.h>

namespace todoke::queue {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime kClaimed{1h};

TEST(LeaseClock, AllowsWhatEndsBeforeTheLeaseByAMargin) {
  const LeaseClock clock(10s);
  EXPECT_TRUE(clock.allows(kClaimed, kClaimed, 2s));
  EXPECT_TRUE(clock.allows(kClaimed, kClaimed + 8s - LeaseClock::kMargin, 2s));
  EXPECT_FALSE(clock.allows(kClaimed, kClaimed + 8s, 2s));
  EXPECT_FALSE(clock.allows(kClaimed, kClaimed + 1h, 0s));
}

TEST(LeaseClock, AShortestLeaseStillAllowsASend) {
  // The shortest that is accepted: the broker's timeout and a second.
  EXPECT_TRUE(LeaseClock(3500ms).allows(kClaimed, kClaimed + 500ms, 2500ms));
}

TEST(LeaseClock, BeatsThreeTimesALeaseAndAtLeastEveryMinute) {
  EXPECT_EQ(LeaseClock(3s).heartbeat_every(), 1s);
  EXPECT_EQ(LeaseClock(120s).heartbeat_every(), 40s);
  EXPECT_EQ(LeaseClock(1h).heartbeat_every(), 60s);
}

}  // namespace
}  // namespace todoke::queue
