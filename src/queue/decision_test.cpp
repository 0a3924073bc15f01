#include "queue/decision.hpp"

#include <gtest/gtest.h>

namespace todoke::queue {
namespace {

using namespace std::chrono_literals;
using Kind = Outcome::Kind;

const Policy kPolicy{.attempts_max = 3, .retry = RetryTable({5s, 10s, 20s})};

TEST(NextStep, ARowIsTriedAsLongAsATryIsLeft) {
  EXPECT_EQ(next_step({}, kPolicy.attempts_max, true), Step::try_it);
  EXPECT_EQ(next_step({.attempts = 2, .lapsed = true}, kPolicy.attempts_max, true), Step::try_it);
}

TEST(NextStep, ARowInDoubtIsLookedUpFirstWhereThatIsPossible) {
  EXPECT_EQ(next_step({.in_doubt = true}, kPolicy.attempts_max, true), Step::look_up_then_try);
  EXPECT_EQ(next_step({.in_doubt = true}, kPolicy.attempts_max, false), Step::try_it);
}

TEST(NextStep, WithoutATryLeftNothingIsTried) {
  EXPECT_EQ(next_step({.attempts = 3}, kPolicy.attempts_max, true), Step::give_up);
  EXPECT_EQ(next_step({.attempts = 3, .in_doubt = true}, kPolicy.attempts_max, true),
            Step::look_up_then_give_up);
  EXPECT_EQ(next_step({.attempts = 3, .in_doubt = true}, kPolicy.attempts_max, false), Step::give_up);
  EXPECT_EQ(next_step({.attempts = 9}, kPolicy.attempts_max, true), Step::give_up);
}

TEST(Judge, SuccessSettlesAndEndsTheDoubt) {
  const auto verdict = judge({.attempts = 2, .in_doubt = true}, {.kind = Kind::done}, true, kPolicy, 0.5);
  EXPECT_EQ(verdict, (Verdict{RowStatus::succeeded, 2, false, std::nullopt}));
}

TEST(Judge, AFirstTimeSuccessCountsNoAttempt) {
  EXPECT_EQ(judge({}, {.kind = Kind::done}, true, kPolicy, 0).attempts, 0);
}

TEST(Judge, ATransientFailureWaitsByTheTable) {
  EXPECT_EQ(judge({}, {}, true, kPolicy, 0), (Verdict{RowStatus::failed, 1, false, 5s}));
  EXPECT_EQ(judge({.attempts = 1}, {}, true, kPolicy, 1), (Verdict{RowStatus::failed, 2, false, 12s}));
}

TEST(Judge, TheLastFailureIsCountedAndAborts) {
  EXPECT_EQ(judge({.attempts = 2}, {}, true, kPolicy, 0),
            (Verdict{RowStatus::aborted, 3, false, std::nullopt}));
}

TEST(Judge, AFailureThatDoesNotCountNeverAborts) {
  EXPECT_EQ(judge({.attempts = 2}, {}, false, kPolicy, 0), (Verdict{RowStatus::failed, 2, false, 10s}));
  EXPECT_EQ(judge({}, {}, false, kPolicy, 0), (Verdict{RowStatus::failed, 0, false, 5s}));
}

TEST(Judge, AFailureThatAlwaysCountsAbortsAlsoDuringAnOutage) {
  EXPECT_EQ(judge({.attempts = 2}, {.counts_always = true}, false, kPolicy, 0),
            (Verdict{RowStatus::aborted, 3, false, std::nullopt}));
}

TEST(Judge, WhatWasNotTouchedIsPendingAsBefore) {
  EXPECT_EQ(judge({.attempts = 2, .in_doubt = true}, {.kind = Kind::untouched}, true, kPolicy, 0),
            (Verdict{RowStatus::pending, 2, true, std::nullopt}));
}

TEST(Judge, APermanentFailureAbortsAtOnce) {
  EXPECT_EQ(judge({}, {.kind = Kind::permanent}, true, kPolicy, 0),
            (Verdict{RowStatus::aborted, 1, false, std::nullopt}));
}

TEST(Judge, WhatWasRefusedBeforeATryCountsNoAttempt) {
  EXPECT_EQ(judge({}, {.kind = Kind::permanent, .was_tried = false}, true, kPolicy, 0),
            (Verdict{RowStatus::aborted, 0, false, std::nullopt}));
}

TEST(Judge, GivingUpAfterALapsedLeaseKeepsTheCountWithinTheBudget) {
  const RowState row{.attempts = 3, .in_doubt = true, .lapsed = true};
  EXPECT_EQ(judge(row, {.kind = Kind::permanent, .was_tried = false}, true, kPolicy, 0),
            (Verdict{RowStatus::aborted, 3, true, std::nullopt}));
}

TEST(Judge, DoubtStaysUntilTheOtherSideHasSaidWhatBecameOfIt) {
  EXPECT_TRUE(judge({}, {.in_doubt = true}, true, kPolicy, 0).in_doubt);
  EXPECT_TRUE(judge({.in_doubt = true}, {}, true, kPolicy, 0).in_doubt);
  EXPECT_FALSE(judge({.in_doubt = true}, {.doubt_ended = true}, true, kPolicy, 0).in_doubt);
  EXPECT_TRUE(judge({.in_doubt = true}, {.in_doubt = true, .doubt_ended = true}, true, kPolicy, 0).in_doubt);
  EXPECT_TRUE(judge({.in_doubt = true}, {.kind = Kind::permanent}, true, kPolicy, 0).in_doubt);
}

TEST(Judge, ALongerPauseThatWasAskedForIsKept) {
  EXPECT_EQ(judge({}, {.retry_after = 60s}, true, kPolicy, 0).delay, 60s);
  EXPECT_EQ(judge({}, {.retry_after = 1s}, true, kPolicy, 0).delay, 5s);
}

}  // namespace
}  // namespace todoke::queue
