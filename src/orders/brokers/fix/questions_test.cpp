#include "orders/brokers/fix/questions.hpp"

#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr FixPauses kPauses{2'000ms, 60'000ms};
constexpr SteadyTime kNow(1h);
// The longest pause: a Backoff adds 20 % at most.
constexpr auto kFirstMost = 2'400ms;

WatchedOrder order(std::int64_t id) {
  return {id, "ORDER", "{}"};
}

TEST(FixPace, QuestionsThatComeTogetherGoOneAfterTheOther) {
  FixPace pace(4);
  const SteadyTime now(10s);
  EXPECT_EQ(pace.next_turn(now), now);
  EXPECT_EQ(pace.next_turn(now), now + 250ms);
  EXPECT_EQ(pace.next_turn(now + 100ms), now + 500ms);
}

TEST(FixPace, TimeWithoutQuestionsIsNotSavedUp) {
  FixPace pace(4);
  const SteadyTime now(10s);
  EXPECT_EQ(pace.next_turn(now), now);
  EXPECT_EQ(pace.next_turn(now + 1h), now + 1h);
  EXPECT_EQ(pace.next_turn(now + 1h), now + 1h + 250ms);
}

TEST(FixUnanswered, AQuestionIsRepeatedAfterSecondsAndThenEverLater) {
  FixUnanswered unanswered(kPauses, 1h);
  auto now = kNow;
  for (const std::chrono::milliseconds pause : {2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    unanswered.add(order(1), now);
    EXPECT_TRUE(unanswered.due(now + pause - 1ms).empty());
    now += pause + pause / 5;
    EXPECT_EQ(unanswered.due(now).size(), 1U);
  }
}

TEST(FixUnanswered, AnAnswerEndsTheRepeats) {
  FixUnanswered unanswered(kPauses, 1h);
  unanswered.add(order(1), kNow);
  unanswered.add(order(2), kNow);
  unanswered.remove(1);
  const auto due = unanswered.due(kNow + kFirstMost);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due.front().outbox_id, 2);
}

TEST(FixUnanswered, AnOrderWhoseNextTurnComesFirstWaitsForThat) {
  FixUnanswered unanswered(kPauses, 5s);
  unanswered.add(order(1), kNow);
  EXPECT_EQ(unanswered.size(), 1U);
  unanswered.add(order(1), kNow + kFirstMost);
  EXPECT_EQ(unanswered.size(), 0U);
}

TEST(FixUnanswered, HoldsNoMoreThanItMay) {
  FixUnanswered unanswered(kPauses, 1h);
  for (std::size_t i = 0; i <= FixUnanswered::kMost; ++i)
    unanswered.add(order(static_cast<std::int64_t>(i)), kNow);
  EXPECT_EQ(unanswered.size(), FixUnanswered::kMost);
}

TEST(FixSilence, ABrokerThatDoesNotAnswerIsLeftAloneForEverLonger) {
  FixSilence silence(kPauses);
  auto now = kNow;
  for (const std::chrono::milliseconds pause : {2s, 4s, 8s}) {
    for (std::size_t i = 1; i < FixSilence::kInARow; ++i) EXPECT_FALSE(silence.add(now));
    EXPECT_FALSE(silence.is_pause(now));
    EXPECT_EQ(silence.add(now), pause == 2s);
    EXPECT_TRUE(silence.is_pause(now + pause - 1ms));
    now += pause + pause / 5;
    EXPECT_FALSE(silence.is_pause(now));
  }
}

TEST(FixSilence, AnAnswerEndsIt) {
  FixSilence silence(kPauses);
  for (std::size_t i = 0; i < FixSilence::kInARow; ++i) silence.add(kNow);
  silence.end();
  EXPECT_FALSE(silence.is_pause(kNow));
  for (std::size_t i = 1; i < FixSilence::kInARow; ++i) silence.add(kNow);
  EXPECT_TRUE(silence.add(kNow));
  EXPECT_FALSE(silence.is_pause(kNow + kFirstMost));
}

}  // namespace
}  // namespace todoke::orders
