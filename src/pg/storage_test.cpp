#include "pg/storage.hpp"

#include <gtest/gtest.h>

namespace todoke::pg {
namespace {

TEST(Storage, IsLowBelowTheLeastAndUntilAQuarterMoreIsFree) {
  EXPECT_FALSE(next_low(false, 1'000, 1'000));
  EXPECT_TRUE(next_low(false, 999, 1'000));
  EXPECT_TRUE(next_low(true, 1'249, 1'000));
  EXPECT_FALSE(next_low(true, 1'250, 1'000));
}

TEST(Storage, WithoutALeastIsNeverLow) {
  EXPECT_FALSE(next_low(false, 0, 0));
  EXPECT_FALSE(next_low(true, 0, 0));
}

TEST(Storage, IsFullForEitherCauseUntilBothAreOver) {
  Storage storage;
  EXPECT_FALSE(storage.is_full());
  storage.set_low(true);
  storage.set_refused(true);
  EXPECT_TRUE(storage.is_full());
  storage.set_low(false);
  EXPECT_TRUE(storage.is_full());
  storage.set_refused(false);
  EXPECT_FALSE(storage.is_full());
}

}  // namespace
}  // namespace todoke::pg
