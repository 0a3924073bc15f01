#include "orders/brokers/fix/watch.hpp"

#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

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

}  // namespace
}  // namespace todoke::orders
