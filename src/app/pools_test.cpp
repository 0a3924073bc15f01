#include "app/pools.hpp"

#include <gtest/gtest.h>

#include "pg/config.hpp"

namespace todoke::app {
namespace {

TEST(PoolSharesTest, TheSharesAreTheWholeAndNobodyGoesWithout) {
  for (auto whole = static_cast<std::size_t>(pg::kDatabasePoolMax.spec.min); whole <= 200; ++whole) {
    const auto shares = share_out(whole);
    EXPECT_EQ(shares.control + shares.background + shares.orders + shares.reads, whole);
    EXPECT_GE(shares.control, 1U) << whole;
    EXPECT_GE(shares.background, 3U) << whole;
    EXPECT_GE(shares.orders, 1U) << whole;
    EXPECT_GE(shares.reads, 1U) << whole;
  }
}

TEST(PoolSharesTest, WhatALargePoolAddsGoesToOrdersAndReads) {
  const auto shares = share_out(100);
  EXPECT_EQ(shares.control, 3U);
  EXPECT_EQ(shares.background, 8U);
  EXPECT_EQ(shares.reads, 44U);
  EXPECT_EQ(shares.orders, 45U);
}

TEST(PoolSharesTest, ControlHasAnEighthAndTheRestIsShared) {
  const auto shares = share_out(20);
  EXPECT_EQ(shares.control, 2U);
  EXPECT_EQ(shares.background, 6U);
  EXPECT_EQ(shares.reads, 6U);
  EXPECT_EQ(shares.orders, 6U);
}

}  // namespace
}  // namespace todoke::app
