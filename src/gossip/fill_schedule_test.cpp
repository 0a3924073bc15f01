#include "gossip/fill_schedule.hpp"

#include <gtest/gtest.h>

namespace todoke::gossip {
namespace {

using namespace std::chrono_literals;

NodeId node(char digit) {
  return NodeId::from_hex(std::string(64, digit)).value();
}
FillSchedule::Pair pair_of(char channel, char peer) {
  return {ChannelId::from_hex(std::string(64, channel)).value(), node(peer)};
}

const auto kAtA = pair_of('1', 'a');
const auto kOtherAtA = pair_of('2', 'a');
const auto kAtB = pair_of('1', 'b');
constexpr auto kEvery = 5min;
constexpr SteadyTime kStart{1'000s};
constexpr SystemTime kBegan{1'700'000'000s};

class FillScheduleTest : public testing::Test {
 protected:
  std::optional<FillSchedule::Pair> next(SteadyTime now) {
    const auto job = schedule.next(now);
    return job ? std::optional(job->pair) : std::nullopt;
  }
  void ended(const FillSchedule::Pair& pair, SteadyTime now, bool whole = true) {
    schedule.ended(pair, whole ? std::optional(kBegan) : std::nullopt, now, kEvery);
  }
  FillSchedule schedule;
};

TEST_F(FillScheduleTest, ANewNeighbourIsAskedAtOnceForEverything) {
  schedule.add(kAtA, kStart);
  const auto job = schedule.next(kStart);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->pair, kAtA);
  EXPECT_FALSE(job->whole_until);
  EXPECT_FALSE(next(kStart + 1h)) << "as long as it is asked";
}

TEST_F(FillScheduleTest, WhoWasAskedToTheEndIsAskedAgainLaterForWhatIsYounger) {
  schedule.add(kAtA, kStart);
  next(kStart);
  ended(kAtA, kStart);
  EXPECT_FALSE(next(kStart + kEvery - 1ms));
  const auto job = schedule.next(kStart + kEvery);
  ASSERT_TRUE(job);
  EXPECT_EQ(job->whole_until, kBegan);
}

TEST_F(FillScheduleTest, WhatDidNotComeToItsEndIsRepeatedEverLater) {
  schedule.add(kAtA, kStart);
  auto now = kStart;
  for (const auto wait : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    ASSERT_EQ(next(now), kAtA);
    ended(kAtA, now, false);
    EXPECT_FALSE(next(now + wait - 1ms));
    now += wait;
  }
  ASSERT_EQ(next(now), kAtA);
  ended(kAtA, now);
  next(now + kEvery);
  ended(kAtA, now, false);
  EXPECT_EQ(next(now + 1s), kAtA) << "it has worked meanwhile";
}

TEST_F(FillScheduleTest, LostMessagesBringTheNextTimeForwardButNotBeforeTheGap) {
  schedule.add(kAtA, kStart);
  next(kStart);
  schedule.soon(kAtA, kStart);
  ended(kAtA, kStart);
  EXPECT_FALSE(next(kStart + 999ms));
  EXPECT_EQ(next(kStart + 1s), kAtA) << "what was lost while it was asked";
  ended(kAtA, kStart + 1s);
  schedule.soon(kAtA, kStart + 1min);
  EXPECT_EQ(next(kStart + 1min), kAtA);
}

TEST_F(FillScheduleTest, ANeighbourIsAskedAboutOneTopicAtATime) {
  schedule.add(kAtA, kStart);
  schedule.add(kOtherAtA, kStart + 1s);
  schedule.add(kAtB, kStart + 2s);
  EXPECT_EQ(next(kStart + 2s), kAtA);
  EXPECT_EQ(next(kStart + 2s), kAtB);
  EXPECT_FALSE(next(kStart + 2s));
  ended(kAtA, kStart + 2s);
  EXPECT_EQ(next(kStart + 2s), kOtherAtA);
}

TEST_F(FillScheduleTest, OneThatGivesNoAnswerRestsUntilItHasNews) {
  schedule.add(kAtA, kStart);
  schedule.add(kOtherAtA, kStart + 1h);
  auto now = kStart;
  for (int i = 0; i < FillSchedule::kUnansweredMax; ++i) {
    now += 1min;
    ASSERT_EQ(next(now), kAtA) << "it may be starting";
    schedule.unanswered(kAtA.second, now);
    ended(kAtA, now, false);
  }
  EXPECT_FALSE(next(now + FillSchedule::kRestFor - 1ms));
  schedule.soon(kOtherAtA, now + 1min);
  EXPECT_TRUE(next(now + 1min));
}

TEST_F(FillScheduleTest, WhoIsNoNeighbourAnyMoreIsForgotten) {
  schedule.add(kAtA, kStart);
  schedule.add(kAtB, kStart);
  ASSERT_EQ(next(kStart), kAtA);
  schedule.remove(kAtA);
  schedule.remove(kAtB);
  ended(kAtA, kStart);
  EXPECT_EQ(schedule.size(), 0U);
  EXPECT_FALSE(next(kStart + 24h));
}

}  // namespace
}  // namespace todoke::gossip
