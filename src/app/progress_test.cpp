#include "app/progress.hpp"

#include <gtest/gtest.h>

namespace todoke::app {
namespace {

using std::chrono::seconds;

TEST(ProgressTest, TheTimeLeftFollowsFromTheTimeThatThePartTook) {
  EXPECT_EQ(rate_text(1'000, seconds(10), 0.25), "100/s, 25 %, 30 s left");
  EXPECT_EQ(rate_text(1'000, seconds(10), 0.1), "100/s, 10 %, 1 m 30 s left");
  EXPECT_EQ(rate_text(60, seconds(60), 0.01), "1/s, 1 %, 1 h 39 m left");
  EXPECT_EQ(rate_text(5, seconds(5), 1), "1/s, 100 %, 0 s left");
  EXPECT_EQ(rate_text(5, seconds(5), 0), "1/s, 0 %") << "nothing to go by";
  EXPECT_EQ(rate_text(5, seconds(5), std::nullopt), "1/s") << "a pipe has no end that could be known";
  EXPECT_EQ(rate_text(0, seconds(0), std::nullopt), "0/s");
}

}  // namespace
}  // namespace todoke::app
