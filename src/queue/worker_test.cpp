#include <gmock/gmock.h>

#include "queue/worker_rig.hpp"

namespace todoke::queue::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const int kLastTry = Policy().attempts_max - 1;

TEST_F(WorkerTest, EveryClaimedJobIsHandledAndSettledOnce) {
  for (std::int64_t id = 1; id <= 100; ++id) port.pending.push_back(id);
  begin();
  ASSERT_TRUE(await([this] { return port.settled.size() >= 100; }));
  auto ids = port.settled;
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(metrics.claimed.value(), 100U);
  EXPECT_TRUE(await([this] { return worker->held() == 0; }));
}

TEST_F(WorkerTest, NoMoreJobsRunAtOnceThanConcurrencySays) {
  for (std::int64_t id = 1; id <= 20; ++id) port.pending.push_back(id);
  handler.go_on.reset();
  begin({.concurrency = 3});
  ASSERT_TRUE(await([this] { return handler.begun.size() == 3; }));
  worker->set_concurrency(5);
  ASSERT_TRUE(await([this] { return handler.begun.size() == 5; }));
  handler.go_on.set();
  ASSERT_TRUE(await([this] { return port.settled.size() == 20; }));
  EXPECT_EQ(handler.most_at_once, 5);
}

TEST_F(WorkerTest, ASettlingThatFailsIsRepeatedWithoutDoingTheWorkAgain) {
  port.pending = {1};
  port.settle_failures = 3;
  begin();
  ASSERT_TRUE(await([this] { return !port.settled.empty(); }));
  EXPECT_THAT(handler.begun, ElementsAre(1));
  EXPECT_THAT(port.settled, ElementsAre(1));
}

TEST_F(WorkerTest, StoppingGivesBackWhatWasNotBegunAndSettlesWhatWas) {
  port.pending = {1, 2, 3, 4};
  handler.go_on.reset();
  begin({.concurrency = 2});
  ASSERT_TRUE(await([this] { return handler.begun.size() == 2; }));
  worker->stop();
  ASSERT_TRUE(await([this] { return port.given_back.size() == 2; }));
  EXPECT_FALSE(has_ended);
  handler.go_on.set();
  ASSERT_TRUE(await([this] { return has_ended; }));
  EXPECT_THAT(port.settled, UnorderedElementsAre(1, 2));
  EXPECT_THAT(port.given_back, UnorderedElementsAre(3, 4));
}

TEST_F(WorkerTest, NothingIsBegunOnceItIsToStop) {
  port.pending = {1};
  handler.go_on.reset();
  handler.waits_first = true;
  begin();
  ASSERT_TRUE(await([this] { return handler.begun.size() == 1; }));
  worker->stop();
  handler.go_on.set();
  ASSERT_TRUE(await([this] { return has_ended; }));
  EXPECT_THAT(port.settled, IsEmpty());
  EXPECT_THAT(port.given_back, UnorderedElementsAre(1));
}

TEST_F(WorkerTest, WhatAClaimBringsAfterTheStopIsGivenBack) {
  Signal gate(io.get_executor());
  port.claim_gate = &gate;
  port.pending = {1, 2};
  begin();
  ASSERT_TRUE(await([this] { return port.claims == 1; }));
  worker->stop();
  // Everything that has heard of the stop has ended then.
  while (io.poll_one() > 0) {
  }
  EXPECT_FALSE(has_ended);
  gate.set();
  ASSERT_TRUE(await([this] { return has_ended; }));
  EXPECT_THAT(port.given_back, UnorderedElementsAre(1, 2));
}

TEST_F(WorkerTest, ARowThatSomebodyHasLockedHoldsUpNobodyElse) {
  port.pending = {1, 2, 3};
  port.locked = {2};
  begin();
  ASSERT_TRUE(await([this] { return port.settled.size() == 2; }));
  EXPECT_THAT(port.settled, UnorderedElementsAre(1, 3));
  EXPECT_TRUE(await([this] { return worker->held() == 1; }));
  port.pending = {4};
  ASSERT_TRUE(await([this] { return port.settled.size() == 3; }));
  port.locked.clear();
  ASSERT_TRUE(await([this] { return port.settled.size() == 4; }));
  EXPECT_EQ(port.settled.back(), 2);
  EXPECT_THAT(handler.begun, UnorderedElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(await([this] { return worker->held() == 0; }));
}

TEST_F(WorkerTest, ALapsedRowThatItStillHasIsNotTakenOver) {
  port.pending = {1};
  handler.go_on.reset();
  begin({.take_over_every = 1ms});
  ASSERT_TRUE(await([this] { return handler.begun.size() == 1; }));
  port.lapsed = {1};
  const int looked = port.looks_for_lapsed;
  ASSERT_TRUE(await([this, looked] { return port.looks_for_lapsed > looked; }));
  handler.go_on.set();
  ASSERT_TRUE(await([this] { return port.settled.size() == 1; }));
  EXPECT_THAT(handler.begun, ElementsAre(1));
}

TEST_F(WorkerTest, AJobThatWasDroppedIsNotTakenForOneThatWasNeverBegun) {
  port.pending = {1};
  handler.throws_for = 1;
  begin();
  ASSERT_TRUE(await([this] { return handler.begun.size() == 1 && worker->held() == 0; }));
  port.lose_claim = true;
  port.pending = {2};
  ASSERT_TRUE(await([this] { return !port.settled.empty(); }));
  EXPECT_THAT(port.held_then, ElementsAre(1));
}

TEST_F(WorkerTest, AJobThatCantBeConcludedLeavesItsLaneToTheNext) {
  port.pending = {1, 2};
  handler.cant_conclude = 1;
  begin({.concurrency = 1});
  ASSERT_TRUE(await([this] { return !port.settled.empty(); }));
  EXPECT_THAT(port.settled, ElementsAre(2));
  EXPECT_TRUE(await([this] { return worker->held() == 0; }));
}

TEST_F(WorkerTest, RowsWhoseClaimWasNotHeardOfAreGivenBackAndClaimedAgain) {
  port.pending = {1, 2};
  port.lose_claim = true;
  begin();
  ASSERT_TRUE(await([this] { return port.settled.size() == 2; }));
  EXPECT_THAT(handler.begun, UnorderedElementsAre(1, 2));
  EXPECT_THAT(port.held_then, IsEmpty());
}

TEST_F(WorkerTest, ALastTryThatHelpedToOpenTheBreakerDoesNotCount) {
  port.pending = {1, 2, 3, 4, 5};
  port.attempts = {{1, kLastTry}, {2, kLastTry}};
  handler.reach = [](std::int64_t) { return Reach::unreachable; };
  begin({.concurrency = 1});
  ASSERT_TRUE(await([this] { return port.settled.size() == 5; }));
  EXPECT_TRUE(port.uncounted.contains(1));
  EXPECT_TRUE(port.uncounted.contains(2));
  EXPECT_EQ(port.refunded.count(1) + port.refunded.count(2), 0U);
}

TEST_F(WorkerTest, ALastTryStandsWhenAnotherJobHasReachedSomebody) {
  port.pending = {1, 2};
  port.attempts = {{1, kLastTry}};
  handler.reach = [](std::int64_t id) { return id == 1 ? Reach::unreachable : Reach::reached; };
  begin({.concurrency = 1});
  ASSERT_TRUE(await([this] { return port.settled.size() == 2; }));
  EXPECT_THAT(port.settled, ElementsAre(2, 1));
  EXPECT_THAT(port.uncounted, IsEmpty());
}

TEST_F(WorkerTest, ALastTryStandsWhenNothingElseIsUnderWay) {
  port.pending = {1};
  port.attempts = {{1, kLastTry}};
  handler.reach = [](std::int64_t) { return Reach::unreachable; };
  begin();
  ASSERT_TRUE(await([this] { return port.settled.size() == 1; }));
  EXPECT_THAT(port.uncounted, IsEmpty());
}

TEST_F(WorkerTest, ALastTryThatWaitsForOthersIsSettledAtTheStop) {
  port.pending = {1, 2, 3};
  port.attempts = {{1, kLastTry}};
  handler.reach = [this](std::int64_t id) {
    if (id == 1) worker->stop();
    return Reach::unreachable;
  };
  begin({.concurrency = 1});
  ASSERT_TRUE(await([this] { return has_ended; }));
  EXPECT_THAT(port.settled, ElementsAre(1));
  EXPECT_THAT(port.given_back, UnorderedElementsAre(2, 3));
}

TEST_F(WorkerTest, RowsAreKeptUntilTheLastIsSettledAlsoAfterTheStop) {
  port.pending = {1};
  port.locked = {1};
  begin({.lease = 600ms});
  ASSERT_TRUE(await([this] { return !port.batches.empty(); }));
  worker->stop();
  while (io.poll_one() > 0) {
  }
  const int beats = port.beats;
  EXPECT_TRUE(await([this, beats] { return port.beats > beats + 2; }));
  EXPECT_FALSE(has_ended);
  port.locked.clear();
  ASSERT_TRUE(await([this] { return has_ended; }));
  EXPECT_THAT(port.settled, ElementsAre(1));
}

TEST_F(WorkerTest, AllLapsedRowsAreTakenOverWithoutWaitingForTheNextLook) {
  for (std::int64_t id = 1; id <= 100; ++id) port.lapsed.push_back(id);
  handler.go_on.reset();
  begin({.concurrency = 1, .batch = 10, .take_over_every = 1h});
  EXPECT_TRUE(await([this] { return metrics.lease_expired.value() == 100; }));
  handler.go_on.set();
}

TEST_F(WorkerTest, ASlowPollDelaysNoTakeoverAndClaimsOnlyWhenWoken) {
  begin({.poll_every = 1h, .take_over_every = 1ms});
  ASSERT_TRUE(await([this] { return port.looks_for_lapsed > 5; }));
  EXPECT_EQ(port.claims, 1);
  port.pending = {1};
  worker->wake();
  EXPECT_TRUE(await([this] { return port.settled.size() == 1; }));
}

TEST_F(WorkerTest, LapsedRowsAreTakenOverAndCounted) {
  port.lapsed = {7};
  begin();
  ASSERT_TRUE(await([this] { return !port.settled.empty(); }));
  EXPECT_THAT(port.settled, ElementsAre(7));
  EXPECT_EQ(metrics.lease_expired.value(), 1U);
}

TEST_F(WorkerTest, AJobThatAHeartbeatDoesNotFindIsNotSentAnyMore) {
  port.pending = {1, 2};
  port.stolen = {2};
  handler.go_on.reset();
  handler.waits_first = true;
  begin({.concurrency = 2, .lease = 1500ms});
  ASSERT_TRUE(await([this] { return port.beats >= 1; }));
  handler.go_on.set();
  ASSERT_TRUE(await([this] { return worker->held() == 0; }));
  // The handler gave back what it had lost, and the table would not have it.
  EXPECT_THAT(port.settled, ElementsAre(1));
  EXPECT_THAT(port.given_back, IsEmpty());
  EXPECT_EQ(metrics.fenced.value(), 0U);
}

TEST_F(WorkerTest, ATryWhoseRowIsSomebodyElsesIsCountedAsFencedAndNotSettledAgain) {
  port.pending = {1, 2};
  port.stolen = {2};
  begin();
  ASSERT_TRUE(await([this] { return metrics.fenced.value() == 1; }));
  EXPECT_TRUE(await([this] { return worker->held() == 0; }));
  EXPECT_THAT(port.settled, ElementsAre(1));
  EXPECT_THAT(handler.begun, UnorderedElementsAre(1, 2));
}

TEST_F(WorkerTest, ARowThatIsClaimedAgainWhileItsOldTryRunsHasTwoJobsAndEachHasItsFate) {
  port.pending = {1};
  handler.go_on.reset();
  begin();
  ASSERT_TRUE(await([this] { return handler.begun.size() == 1; }));
  port.pending = {1};
  ASSERT_TRUE(await([this] { return handler.begun.size() == 2; }));
  EXPECT_EQ(worker->held(), 2U);
  handler.go_on.set();
  ASSERT_TRUE(await([this] { return port.settled.size() == 2; }));
  EXPECT_TRUE(await([this] { return worker->held() == 0; }));
}

TEST_F(WorkerTest, HeartbeatsKeepAJobBeyondItsFirstLease) {
  port.pending = {1};
  handler.go_on.reset();
  begin({.lease = 600ms});
  ASSERT_TRUE(await([this] { return port.beats >= 6; }));
  handler.go_on.set();
  ASSERT_TRUE(await([this] { return !port.settled.empty(); }));
}

TEST_F(WorkerTest, AnOutageStopsClaimingAndCostsNobodyAnAttempt) {
  for (std::int64_t id = 1; id <= 50; ++id) port.pending.push_back(id);
  bool is_down = true;
  handler.reach = [&is_down](std::int64_t) { return is_down ? Reach::unreachable : Reach::reached; };
  begin({.concurrency = 1, .batch = 10});
  ASSERT_TRUE(await([this] { return worker->breaker() == Breaker::State::open; }));
  ASSERT_TRUE(await([this] { return worker->held() == 0; }));
  // Each of the first five is either settled uncounted or has its attempt back.
  for (std::int64_t id = 1; id <= 5; ++id) {
    EXPECT_TRUE(port.uncounted.contains(id) || port.refunded[id] == 1) << id;
  }
  EXPECT_EQ(handler.begun.size(), 5U);
  is_down = false;
  ASSERT_TRUE(await([this] { return port.pending.empty() && worker->held() == 0; }));
  EXPECT_EQ(worker->breaker(), Breaker::State::closed);
}

TEST_F(WorkerTest, WhenTheSettlingLoopDiesTheWorkerEndsAndItsRowsAreLeftToTheirLeases) {
  port.pending = {1};
  port.locked = {1};
  // First it is asked how long the settling took, then when the locked row is to be tried again.
  port.on_settle = [this] { clock.calls_left = 2; };
  expected_death = "the clock broke";
  begin({.lease = 300ms});
  ASSERT_TRUE(await([this] { return has_ended; }));
  EXPECT_EQ(worker->held(), 0U);

  // As the supervisor does.
  port.on_settle = {};
  port.locked = {};
  port.pending = {2};
  run();
  ASSERT_TRUE(await([this] { return !port.settled.empty(); }));
  EXPECT_THAT(port.settled, ElementsAre(2));
  // It was begun: it must not be given back as if it had never been claimed.
  EXPECT_THAT(port.held_then, testing::Contains(1));
  EXPECT_THAT(port.given_back, IsEmpty());
}

TEST_F(WorkerTest, WhenALaneDiesWhatWasSentIsSettledAndWhatWasNotBegunIsGivenBack) {
  port.pending = {1};
  handler.go_on.reset();
  begin({.concurrency = 2});
  ASSERT_TRUE(await([this] { return handler.begun.size() == 1; }));
  // First it is asked how long the claim took, then the free lane asks whether it may begin.
  port.on_claimed = [this] { clock.calls_left = 2; };
  expected_death = "the clock broke";
  port.pending = {2};
  ASSERT_TRUE(await([this] { return port.given_back.contains(2); }));
  EXPECT_FALSE(has_ended);
  handler.go_on.set();
  ASSERT_TRUE(await([this] { return has_ended; }));
  EXPECT_THAT(port.settled, ElementsAre(1));
  EXPECT_THAT(handler.begun, ElementsAre(1));
}

}  // namespace
}  // namespace todoke::queue::test
