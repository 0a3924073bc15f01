#include "orders/intake/intake_plan.hpp"

#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

Offer offer(std::string key, std::string digest) {
  return {std::move(key), std::move(digest), "{}", {}};
}

OrderState stored(const std::string& key, const std::string& digest) {
  OrderState state;
  state.idempotency_key = key;
  state.request_digest = digest;
  state.status = "succeeded";
  return state;
}

TEST(IntakePlan, FindsTheFirstOfEachKey) {
  const auto a = offer("a", "1");
  const auto b = offer("b", "1");
  const auto again = offer("a", "2");
  const std::vector<const Offer*> offers{&a, &b, &again, &b};
  EXPECT_EQ(first_of_key(offers), (std::vector<std::size_t>{0, 1, 0, 1}));
}

TEST(IntakePlan, OfOneKeyInABatchTheFirstIsAcceptedAndTheOthersFollowIt) {
  const auto first = offer("a", "1");
  const auto same = offer("a", "1");
  const auto other = offer("a", "2");
  const KeyFate fate{.taken_now = true};
  EXPECT_EQ(judge(first, true, first, fate).verdict, IntakeVerdict::accepted);
  EXPECT_EQ(judge(same, false, first, fate).verdict, IntakeVerdict::replayed);
  EXPECT_EQ(judge(other, false, first, fate).verdict, IntakeVerdict::conflict);
  EXPECT_EQ(judge(same, false, first, fate).state.status, "pending");
}

TEST(IntakePlan, AKnownKeyIsReplayedOrConflicts) {
  const auto same = offer("a", "1");
  const auto other = offer("a", "2");
  const KeyFate fate{.stored = stored("a", "1")};
  const auto replay = judge(same, true, same, fate);
  EXPECT_EQ(replay.verdict, IntakeVerdict::replayed);
  EXPECT_EQ(replay.state.status, "succeeded");
  EXPECT_EQ(judge(other, true, other, fate).verdict, IntakeVerdict::conflict);
  // Behind one that is refused itself.
  EXPECT_EQ(judge(same, false, other, fate).verdict, IntakeVerdict::replayed);
}

TEST(IntakePlan, WhatALostCommitMayHaveTakenCountsAsTakenByTheFirst) {
  const auto same = offer("a", "1");
  const auto other = offer("a", "2");
  const KeyFate fate{.maybe_ours = true, .stored = stored("a", "1")};
  EXPECT_EQ(judge(same, true, same, fate).verdict, IntakeVerdict::accepted);
  EXPECT_EQ(judge(same, false, same, fate).verdict, IntakeVerdict::replayed);
  EXPECT_EQ(judge(other, true, other, fate).verdict, IntakeVerdict::conflict);
}

TEST(IntakePlan, AKeyThatVanishedIsNeverCalledAccepted) {
  const auto a = offer("a", "1");
  EXPECT_EQ(judge(a, true, a, {}).verdict, IntakeVerdict::unavailable);
  EXPECT_EQ(judge(a, true, a, {.maybe_ours = true}).verdict, IntakeVerdict::unknown);
}

}  // namespace
}  // namespace todoke::orders
