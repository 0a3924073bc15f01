#include "queue/retry_table.hpp"

#include <gtest/gtest.h>

namespace todoke::queue {
namespace {

using namespace std::chrono_literals;

TEST(RetryTable, WaitsByTheTableAndRepeatsItsLastEntry) {
  const RetryTable table({5s, 10s, 20s});
  EXPECT_EQ(table.delay(1, 0), 5s);
  EXPECT_EQ(table.delay(2, 0), 10s);
  EXPECT_EQ(table.delay(3, 0), 20s);
  EXPECT_EQ(table.delay(4, 0), 20s);
  EXPECT_EQ(table.delay(400, 0), 20s);
}

TEST(RetryTable, JitterAddsUpToAFifthAndNeverTakesAway) {
  const RetryTable table({10s});
  for (const double jitter : {-1.0, 0.0, 0.25, 0.5, 0.999, 1.0, 2.0}) {
    EXPECT_GE(table.delay(1, jitter), 10s) << jitter;
    EXPECT_LE(table.delay(1, jitter), 12s) << jitter;
  }
  EXPECT_EQ(table.delay(1, 0.5), 11s);
}

TEST(RetryTable, TakesTheListWithAndWithoutBrackets) {
  for (const auto& entries : {std::vector<std::string>{"5", "10"}, {"[5", "10]"}, {" [ 5 ", " 10 ] "}}) {
    const auto table = RetryTable::parse(entries);
    ASSERT_TRUE(table) << entries.front();
    EXPECT_EQ(table->delays(), (std::vector<std::chrono::seconds>{5s, 10s}));
  }
}

TEST(RetryTable, RefusesWhatIsNoListOfSeconds) {
  EXPECT_FALSE(RetryTable::parse({}));
  EXPECT_FALSE(RetryTable::parse({"[]"}));
  EXPECT_FALSE(RetryTable::parse({"5", ""}));
  EXPECT_FALSE(RetryTable::parse({"-1"}));
  EXPECT_FALSE(RetryTable::parse({"1.5"}));
  EXPECT_FALSE(RetryTable::parse({"5s"}));
  EXPECT_FALSE(RetryTable::parse({"604801"}));
}

}  // namespace
}  // namespace todoke::queue
