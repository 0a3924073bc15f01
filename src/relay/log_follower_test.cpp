#include "relay/log_follower.hpp"

#include <gtest/gtest.h>

#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using nostr::Seq;

LogFollower::Batch batch_of(std::int64_t head_before, std::int64_t head, std::vector<Gone> gone = {}) {
  LogFollower::Batch batch;
  batch.log.head_before = Seq{head_before};
  batch.log.head = Seq{head};
  batch.log.gone = std::move(gone);
  return batch;
}

class LogFollowerTest : public testing::Test {
 protected:
  static constexpr std::size_t kBatchesMax = 3;

  // Fetches everything; nothing is there. So begins every one.
  void find_nothing() {
    const auto fetch = follower.next_fetch();
    ASSERT_TRUE(fetch);
    EXPECT_EQ(fetch->until, LogFollower::kNoEnd);
    follower.fetched(*fetch, false);
  }
  // Applies what may be applied; gives the heads.
  std::vector<std::int64_t> apply_all() {
    std::vector<std::int64_t> heads;
    while (const auto batch = follower.next_batch()) {
      follower.applied(*batch);
      heads.push_back(follower.head().value);
    }
    return heads;
  }
  void follow_to(std::int64_t head) {
    follower.begin_at(Seq{head});
    find_nothing();
  }

  LogFollower follower{kBatchesMax};
};

TEST_F(LogFollowerTest, FetchesWhatCameBeforeItBeganAndThenWaits) {
  follow_to(10);
  EXPECT_FALSE(follower.next_fetch());
  EXPECT_FALSE(follower.next_batch());
  EXPECT_TRUE(follower.is_even());
}

TEST_F(LogFollowerTest, BatchRightBehindTheHeadIsApplied) {
  follow_to(10);
  follower.appended(batch_of(10, 12));
  follower.appended(batch_of(12, 13));
  EXPECT_EQ(follower.newest(), Seq{13});
  EXPECT_FALSE(follower.is_even());
  EXPECT_EQ(apply_all(), (std::vector<std::int64_t>{12, 13}));
  EXPECT_FALSE(follower.next_fetch());
}

TEST_F(LogFollowerTest, RowsOfOthersBeforeABatchAreFetchedFirst) {
  follow_to(10);
  follower.appended(batch_of(15, 16));
  EXPECT_FALSE(follower.next_batch());
  auto fetch = follower.next_fetch();
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->until, Seq{15});
  EXPECT_TRUE(follower.pass(Seq{11}));
  EXPECT_FALSE(follower.pass(Seq{11}));
  follower.fetched(*fetch, true);
  EXPECT_FALSE(follower.next_batch()) << "there are more rows before it";
  fetch = follower.next_fetch();
  ASSERT_TRUE(fetch);
  follower.fetched(*fetch, false);
  EXPECT_EQ(follower.head(), Seq{15}) << "12 to 15 were rolled back";
  EXPECT_EQ(apply_all(), (std::vector<std::int64_t>{16}));
}

TEST_F(LogFollowerTest, BatchesWaitWhileRowsAreFetched) {
  follow_to(10);
  EXPECT_TRUE(follower.told(Seq{11}));
  const auto fetch = follower.next_fetch();
  ASSERT_TRUE(fetch);
  follower.appended(batch_of(10, 12));
  EXPECT_FALSE(follower.next_batch());
  follower.fetched(*fetch, false);
  EXPECT_EQ(apply_all(), (std::vector<std::int64_t>{12}));
}

TEST_F(LogFollowerTest, FetchThatFailedIsRepeated) {
  follow_to(10);
  follower.told();
  ASSERT_TRUE(follower.next_fetch());
  follower.fetch_failed();
  find_nothing();
  EXPECT_FALSE(follower.next_fetch());
}

TEST_F(LogFollowerTest, FullFetchIsFollowedByAnother) {
  follow_to(10);
  follower.told();
  const auto fetch = follower.next_fetch();
  follower.pass(Seq{20});
  follower.fetched(*fetch, true);
  find_nothing();
  EXPECT_FALSE(follower.next_fetch());
}

TEST_F(LogFollowerTest, TooManyBatchesAreLetGoAndFetched) {
  follow_to(10);
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(follower.appended(batch_of(20 + i, 21 + i)), 0U);
  EXPECT_EQ(follower.appended(batch_of(23, 24)), 4U);
  EXPECT_FALSE(follower.is_even());
  EXPECT_EQ(follower.newest(), Seq{24});
  EXPECT_TRUE(follower.may_be_gone_later(id_of(1))) << "nobody knows what they held";
  const auto fetch = follower.next_fetch();
  ASSERT_TRUE(fetch);
  EXPECT_EQ(fetch->until, LogFollower::kNoEnd);
  EXPECT_TRUE(follower.pass(Seq{24}));
  follower.fetched(*fetch, false);
  EXPECT_TRUE(follower.is_even());
  EXPECT_EQ(follower.untold(), Seq{24});
}

TEST_F(LogFollowerTest, BatchesThatAreLetGoDuringAFetchAreFetchedByTheNext) {
  follow_to(10);
  follower.told();
  const auto fetch = follower.next_fetch();
  for (std::int64_t i = 0; i < 4; ++i) follower.appended(batch_of(10 + i, 11 + i));
  follower.fetched(*fetch, false);
  EXPECT_FALSE(follower.is_even());
  find_nothing();
  EXPECT_TRUE(follower.is_even());
}

TEST_F(LogFollowerTest, RowsOfALogThatWasRestoredMeanwhileDontCount) {
  follow_to(10);
  follower.appended(batch_of(15, 16));
  const auto fetch = follower.next_fetch();
  ASSERT_TRUE(fetch);
  EXPECT_TRUE(follower.is_current(*fetch));
  follower.restored();
  EXPECT_FALSE(follower.is_current(*fetch));
  follower.fetched(*fetch, false);
  EXPECT_EQ(follower.head(), Seq{10});
  EXPECT_FALSE(follower.is_even());
  find_nothing();
  EXPECT_TRUE(follower.is_even());
}

TEST_F(LogFollowerTest, WhatABatchThatWaitsEndsIsKnown) {
  follow_to(10);
  follower.appended(batch_of(15, 16, {{id_of(1), kNow}}));
  EXPECT_TRUE(follower.may_be_gone_later(id_of(1)));
  EXPECT_FALSE(follower.may_be_gone_later(id_of(2)));
}

TEST_F(LogFollowerTest, OthersAreToldOnceOfWhatThisRelayHasWritten) {
  follow_to(10);
  EXPECT_FALSE(follower.untold());
  follower.appended(batch_of(10, 12));
  apply_all();
  EXPECT_EQ(follower.untold(), Seq{12});
  follower.others_told(Seq{12});
  EXPECT_FALSE(follower.untold());
  EXPECT_FALSE(follower.told(Seq{12})) << "its own notification comes back";
}

}  // namespace
}  // namespace todoke::relay::test
