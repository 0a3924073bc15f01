#include "orders/intake/order_state.hpp"

#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

TEST(OrderWatch, NobodyWaitsLongerThanHalfAMinute) {
  EXPECT_EQ(OrderWatch::asked_wait("5s"), 5s);
  EXPECT_EQ(OrderWatch::asked_wait("250ms"), 250ms);
  EXPECT_EQ(OrderWatch::asked_wait("5"), 5s);
  EXPECT_EQ(OrderWatch::asked_wait("0"), 0s);
  for (const auto* text : {"30s", "31s", "1h", "25h", "30d", "99999999999"}) {
    EXPECT_EQ(OrderWatch::asked_wait(text), 30s) << text;
  }
  for (const auto* text : {"", "soon", "-1s", "5 parsecs"}) {
    EXPECT_EQ(OrderWatch::asked_wait(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace todoke::orders
