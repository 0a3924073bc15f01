#include "net/rate_limit.hpp"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace todoke::net {
namespace {

using namespace std::chrono_literals;

struct RateLimit : testing::Test {
  ManualClock clock;
  metrics::Registry registry;

  RateLimiter limiter(Rate rate, bool on = true, std::size_t keys_max = 10) {
    return RateLimiter("publish", rate, on, clock, registry, keys_max);
  }
  std::uint64_t limited() {
    return registry.counters("todoke_rate_limited_total", "Requests refused by a rate limit.", {"verb"})
        .with({"publish"})
        .value();
  }
};

TEST_F(RateLimit, BurstIsAllowedThenTheRate) {
  auto l = limiter({.per_second = 2, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(l.take("a").allowed);
  const auto refused = l.take("a");
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, 500ms);
  EXPECT_EQ(limited(), 1U);
  clock.advance(500ms);
  EXPECT_TRUE(l.take("a").allowed);
  EXPECT_FALSE(l.take("a").allowed);
}

TEST_F(RateLimit, BucketFillsNoFurtherThanTheBurst) {
  auto l = limiter({.per_second = 100, .burst = 2});
  clock.advance(1h);
  EXPECT_TRUE(l.take("a", 2).allowed);
  clock.advance(1h);
  EXPECT_TRUE(l.take("a", 1).allowed);
  EXPECT_FALSE(l.take("a", 2).allowed);
  EXPECT_TRUE(l.take("a", 1).allowed) << "a refusal takes nothing";
}

TEST_F(RateLimit, WhatCostsMoreThanAFullBucketTakesAFullOne) {
  auto l = limiter({.per_second = 1, .burst = 3});
  EXPECT_TRUE(l.take("a", 100).allowed);
  EXPECT_FALSE(l.take("a").allowed);
  clock.advance(2s);
  const auto refused = l.take("a", 100);
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, 1s);
}

TEST_F(RateLimit, AnotherRateHoldsAtOnceForBucketsThatAreThere) {
  auto l = limiter({.per_second = 1, .burst = 100});
  EXPECT_TRUE(l.take("a").allowed);
  l.set({.per_second = 1, .burst = 2}, true);
  EXPECT_TRUE(l.take("a", 2).allowed);
  EXPECT_FALSE(l.take("a").allowed);
  l.set({.per_second = 10, .burst = 20}, true);
  clock.advance(1s);
  EXPECT_TRUE(l.take("a", 10).allowed);
  EXPECT_FALSE(l.take("a").allowed);
  l.set({.per_second = 10, .burst = 20}, false);
  EXPECT_TRUE(l.take("a", 1'000).allowed);
  EXPECT_THROW(l.set({.per_second = 0, .burst = 1}, true), std::invalid_argument);
}

TEST_F(RateLimit, KeysHaveBucketsOfTheirOwn) {
  auto l = limiter({.per_second = 1, .burst = 1});
  EXPECT_TRUE(l.take("a").allowed);
  EXPECT_FALSE(l.take("a").allowed);
  EXPECT_TRUE(l.take("b").allowed);
}

TEST_F(RateLimit, NumberOfKeysIsBoundedAndNobodyIsForgottenForOthers) {
  auto l = limiter({.per_second = 0.001, .burst = 1}, true, 2);
  EXPECT_TRUE(l.take("a").allowed);
  EXPECT_TRUE(l.take("b").allowed);
  for (int i = 0; i < 100; ++i) l.take(std::to_string(i));
  EXPECT_EQ(l.keys(), 2U);
  EXPECT_FALSE(l.take("a").allowed);
  EXPECT_FALSE(l.take("b").allowed);
}

TEST_F(RateLimit, KeysWithoutRoomShareTheBucketOfTheirCrowd) {
  auto l = limiter({.per_second = 0.001, .burst = 10}, true, 1);
  EXPECT_TRUE(l.take("a", 10).allowed);
  int allowed = 0;
  for (int i = 0; i < 100; ++i) {
    const auto key = "203.0." + std::to_string(i);
    const std::array<RateLimiter::Charge, 1> charges{RateLimiter::Charge{key, "203.0.0.0/16"}};
    allowed += l.take(charges, 10).allowed ? 1 : 0;
  }
  EXPECT_EQ(allowed, RateLimiter::kCrowdTimes);
  EXPECT_NE(registry.render().find("todoke_rate_limit_crowded_total{verb=\"publish\"} 100\n"),
            std::string::npos);
}

TEST_F(RateLimit, MillionKeysTakeTheMemoryOfTheBoundAndTogetherABoundedAmount) {
  auto l = limiter({.per_second = 1, .burst = 1}, true, 1'000);
  std::size_t allowed = 0;
  for (int i = 0; i < 1'000'000; ++i) allowed += l.take(std::to_string(i)).allowed ? 1U : 0U;
  EXPECT_EQ(l.keys(), 1'000U);
  EXPECT_LE(allowed, 1'000 + RateLimiter::kCrowds * static_cast<std::size_t>(RateLimiter::kCrowdTimes));
  // The client that came first has what the rate gives.
  clock.advance(1s);
  EXPECT_TRUE(l.take("0").allowed);
}

TEST_F(RateLimit, AllOfTheBucketsPayOrNone) {
  auto l = limiter({.per_second = 0.001, .burst = 3});
  const std::array<RateLimiter::Charge, 2> alice{RateLimiter::Charge{"address", {}, 2}, {"alice"}};
  const std::array<RateLimiter::Charge, 2> bob{RateLimiter::Charge{"address", {}, 2}, {"bob"}};
  EXPECT_TRUE(l.take(alice, 3).allowed);
  EXPECT_FALSE(l.take(alice, 1).allowed) << "the address has three tokens left, alice none";
  EXPECT_TRUE(l.take(bob, 3).allowed);
  EXPECT_FALSE(l.take("address").allowed);
  EXPECT_EQ(limited(), 2U);
}

TEST_F(RateLimit, ClientWithoutRoomForAnyOfItsBucketsPaysOnce) {
  auto l = limiter({.per_second = 0.001, .burst = 10}, true, 1);
  EXPECT_TRUE(l.take("a", 10).allowed);
  const std::array<RateLimiter::Charge, 2> charges{RateLimiter::Charge{"203.0.0.1", "203.0.0.0/16"},
                                                   {"alice", "203.0.0.0/16"}};
  int allowed = 0;
  for (int i = 0; i < 100; ++i) allowed += l.take(charges, 10).allowed ? 1 : 0;
  EXPECT_EQ(allowed, RateLimiter::kCrowdTimes);
}

TEST_F(RateLimit, WhatWasDoneAlreadyIsOwed) {
  auto l = limiter({.per_second = 1, .burst = 4});
  const std::array<RateLimiter::Charge, 1> a{RateLimiter::Charge{"a"}};
  EXPECT_TRUE(l.take("a").allowed);
  l.charge(a, 5);
  const auto refused = l.take("a");
  EXPECT_FALSE(refused.allowed);
  EXPECT_EQ(refused.retry_after, 3s) << "two that it owes, and the one that it asks for";
  clock.advance(3s);
  EXPECT_TRUE(l.take("a").allowed);
  EXPECT_EQ(limited(), 1U);
}

TEST_F(RateLimit, NobodyOwesMoreThanAFullBucket) {
  auto l = limiter({.per_second = 1, .burst = 4});
  const std::array<RateLimiter::Charge, 1> a{RateLimiter::Charge{"a"}};
  for (int i = 0; i < 100; ++i) l.charge(a, 50);
  clock.advance(5s);
  EXPECT_TRUE(l.take("a").allowed);
}

TEST_F(RateLimit, ScaleMakesEverythingDearerAtOnce) {
  auto l = limiter({.per_second = 0.001, .burst = 8});
  EXPECT_TRUE(l.take("a").allowed);
  l.scale(0.25);
  EXPECT_TRUE(l.take("a").allowed);
  EXPECT_FALSE(l.take("a").allowed) << "three tokens are left, and one message costs four";
  l.scale(1);
  EXPECT_TRUE(l.take("a", 3).allowed);
  EXPECT_THROW(l.scale(0), std::invalid_argument);
}

TEST_F(RateLimit, FullBucketGoesBeforeAnEmptyOne) {
  auto l = limiter({.per_second = 1, .burst = 10}, true, 2);
  EXPECT_TRUE(l.take("drained", 10).allowed);
  EXPECT_TRUE(l.take("full", 1).allowed);
  clock.advance(2s);
  l.take("new");
  EXPECT_FALSE(l.take("drained", 10).allowed) << "still known although it was used less recently";
}

TEST_F(RateLimit, OffAllowsEverythingAndKeepsNothing) {
  auto l = limiter({.per_second = 1, .burst = 1}, false);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(l.take("a").allowed);
  EXPECT_EQ(l.keys(), 0U);
  EXPECT_EQ(limited(), 0U);
}

TEST_F(RateLimit, WallClockThatJumpsChangesNothing) {
  auto l = limiter({.per_second = 1, .burst = 1});
  l.take("a");
  clock.jump(10h);
  EXPECT_FALSE(l.take("a").allowed);
}

}  // namespace
}  // namespace todoke::net
