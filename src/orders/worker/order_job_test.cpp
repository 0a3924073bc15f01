#include "orders/worker/order_job.hpp"

#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

TEST(Ledger, OneThatIsOpenOrMissingLetsTheOrderBeSent) {
  for (const bool lapsed : {false, true}) {
    EXPECT_FALSE(has_last_word(LedgerState::open, lapsed));
    EXPECT_FALSE(has_last_word(LedgerState::missing, lapsed));
  }
}

TEST(Ledger, OneThatSucceededOrIsAnothersIsFollowedWithoutASend) {
  for (const bool lapsed : {false, true}) {
    EXPECT_TRUE(has_last_word(LedgerState::succeeded, lapsed));
    EXPECT_TRUE(has_last_word(LedgerState::conflicting, lapsed));
  }
}

TEST(Ledger, OneThatFailedMeansRequeuedForAPendingRowAndSettledForALapsedOne) {
  EXPECT_FALSE(has_last_word(LedgerState::failed, false));
  EXPECT_TRUE(has_last_word(LedgerState::failed, true));
}

}  // namespace
}  // namespace todoke::orders
