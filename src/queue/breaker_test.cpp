#include "queue/breaker.hpp"

#include <gtest/gtest.h>

namespace todoke::queue {
namespace {

using namespace std::chrono_literals;
using State = Breaker::State;

constexpr std::size_t kLanes = 8;

class BreakerTest : public testing::Test {
 protected:
  Breaker::Ruling fails(std::int64_t job) { return breaker.ended({job}, Reach::unreachable, now, kLanes); }
  Breaker::Ruling reaches(std::int64_t job) { return breaker.ended({job}, Reach::reached, now, kLanes); }
  std::size_t allowed() { return breaker.allowed(now, kLanes); }
  void open() {
    for (std::int64_t job = 1; job <= 5; ++job) fails(job);
    ASSERT_EQ(breaker.state(), State::open);
  }

  Breaker breaker{{.jobs_to_open = 5, .pause_first = 1s, .pause_most = 4s}};
  SteadyTime now{1h};
};

TEST_F(BreakerTest, OneBadJobNeverOpensIt) {
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(fails(1).counts);
  EXPECT_EQ(breaker.state(), State::closed);
  EXPECT_EQ(allowed(), kLanes);
}

TEST_F(BreakerTest, FiveDifferentJobsInARowOpenIt) {
  for (std::int64_t job = 1; job <= 4; ++job) EXPECT_TRUE(fails(job).counts);
  EXPECT_EQ(breaker.state(), State::closed);
  const auto ruling = fails(5);
  EXPECT_EQ(breaker.state(), State::open);
  EXPECT_FALSE(ruling.counts);
  EXPECT_EQ(allowed(), 0U);
}

TEST_F(BreakerTest, ASuccessBetweenStartsTheRowAnew) {
  for (std::int64_t job = 1; job <= 4; ++job) fails(job);
  reaches(9);
  for (std::int64_t job = 1; job <= 4; ++job) fails(job);
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST_F(BreakerTest, TheTriesThatOpenedItAreGivenBack) {
  fails(1);
  fails(1);
  for (std::int64_t job = 2; job <= 4; ++job) fails(job);
  const auto ruling = fails(5);
  EXPECT_EQ(ruling.refunds, (std::map<JobId, int>{{{1}, 2}, {{2}, 1}, {{3}, 1}, {{4}, 1}}));
}

TEST_F(BreakerTest, FailuresWhileItIsNotClosedDontCount) {
  open();
  EXPECT_FALSE(fails(6).counts);
  now += 1s;
  EXPECT_EQ(allowed(), 1U);
  EXPECT_FALSE(fails(7).counts);
  EXPECT_EQ(breaker.state(), State::open);
}

TEST_F(BreakerTest, ProbesWithOneAfterAPauseThatGrowsToItsLimit) {
  open();
  for (const auto pause : {1s, 2s, 4s, 4s}) {
    now += pause - 1ms;
    EXPECT_EQ(allowed(), 0U);
    now += 1ms;
    EXPECT_EQ(allowed(), 1U);
    fails(1);
  }
}

TEST_F(BreakerTest, RampsUpAfterAProbeThatReachedSomebody) {
  open();
  now += 1s;
  EXPECT_EQ(allowed(), 1U);
  reaches(1);
  EXPECT_EQ(breaker.state(), State::ramping);
  EXPECT_EQ(allowed(), 2U);
  reaches(2);
  EXPECT_EQ(allowed(), 4U);
  reaches(3);
  EXPECT_EQ(breaker.state(), State::closed);
  EXPECT_EQ(allowed(), kLanes);
}

TEST_F(BreakerTest, AFailureWhileRampingOpensItAgain) {
  open();
  now += 1s;
  allowed();
  reaches(1);
  EXPECT_FALSE(fails(2).counts);
  EXPECT_EQ(breaker.state(), State::open);
}

TEST_F(BreakerTest, AnAnswerFromBeforeTheOutageLetsTheProbeGoAtOnce) {
  open();
  reaches(9);
  EXPECT_EQ(allowed(), 1U);
}

TEST_F(BreakerTest, PausesStartSmallAgainAfterItHasClosed) {
  open();
  now += 1s;
  allowed();
  fails(1);
  now += 2s;
  for (std::int64_t job = 1; job <= 3; ++job) {
    allowed();
    reaches(job);
  }
  ASSERT_EQ(breaker.state(), State::closed);
  open();
  EXPECT_EQ(breaker.probe_at(), now + 1s);
}

}  // namespace
}  // namespace todoke::queue
