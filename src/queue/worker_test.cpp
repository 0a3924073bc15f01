#include "queue/worker.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace todoke::queue {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

struct TestJob : Job {
  bool counted = true;
};

// A table in memory.
class FakePort : public Port {
 public:
  Task<std::size_t> promote_due(std::size_t) override { co_return 0; }
  Task<Jobs> claim(std::size_t most) override {
    ++claims;
    if (claim_gate != nullptr) co_await claim_gate->wait();
    auto jobs = take(pending, most);
    if (on_claimed && !jobs.empty()) on_claimed();
    if (jobs.empty() || !std::exchange(lose_claim, false)) co_return jobs;
    for (const auto& job : jobs) lost_claims.push_back(job->ticket.id.value);
    throw std::runtime_error("the answer was lost");
  }
  Task<void> give_back_unknown(const std::vector<Ticket>& held) override {
    for (const auto& ticket : held) held_then.push_back(ticket.id.value);
    for (const auto id : std::exchange(lost_claims, {})) pending.push_back(id);
    co_return;
  }
  Task<Jobs> take_over(std::chrono::milliseconds, std::size_t most,
                       const std::vector<Ticket>& held) override {
    ++looks_for_lapsed;
    for (const auto& ticket : held) std::erase(lapsed, ticket.id.value);
    auto jobs = take(lapsed, most);
    for (const auto& job : jobs) job->row.lapsed = true;
    co_return jobs;
  }
  Task<LetGo> settle(const Jobs& jobs) override {
    if (on_settle) on_settle();
    if (settle_failures > 0) {
      --settle_failures;
      throw std::runtime_error("the database is away");
    }
    batches.push_back(jobs.size());
    LetGo outcome;
    for (const auto& job : jobs) {
      if (locked.contains(job->ticket.id.value)) {
        outcome.locked.push_back(job->ticket);
        continue;
      }
      settled.push_back(job->ticket.id.value);
      if (!static_cast<const TestJob&>(*job).counted) uncounted.insert(job->ticket.id.value);
    }
    co_return outcome;
  }
  Task<LetGo> give_back(const Jobs& jobs) override {
    for (const auto& job : jobs) given_back.insert(job->ticket.id.value);
    co_return LetGo{};
  }
  Task<void> refund(const std::map<JobId, int>& tries) override {
    for (const auto& [id, count] : tries) refunded[id.value] += count;
    co_return;
  }
  Task<std::vector<Kept>> heartbeat(const std::vector<Ticket>& tickets) override {
    ++beats;
    std::vector<Kept> kept;
    for (const auto& ticket : tickets) {
      const auto id = ticket.id.value;
      if (!stolen.contains(id)) kept.push_back({ticket, !locked.contains(id)});
    }
    co_return kept;
  }
  Task<bool> archive() override {
    ++archived;
    co_return false;
  }

  std::vector<std::int64_t> pending;
  std::vector<std::int64_t> lapsed;
  std::set<std::int64_t> stolen;
  std::set<std::int64_t> locked;
  Signal* claim_gate = nullptr;
  int looks_for_lapsed = 0;
  bool lose_claim = false;
  std::vector<std::int64_t> lost_claims;
  std::vector<std::int64_t> held_then;
  int settle_failures = 0;
  std::function<void()> on_settle;
  std::function<void()> on_claimed;
  int claims = 0;
  int beats = 0;
  int archived = 0;
  std::vector<std::int64_t> settled;
  std::set<std::int64_t> uncounted;
  std::vector<std::size_t> batches;
  std::set<std::int64_t> given_back;
  std::map<std::int64_t, int> refunded;

 private:
  static Jobs take(std::vector<std::int64_t>& from, std::size_t most) {
    Jobs jobs;
    const auto count = std::min(most, from.size());
    for (std::size_t i = 0; i < count; ++i) {
      auto job = std::make_shared<TestJob>();
      job->ticket = {{from[i]}, {1}};
      jobs.push_back(std::move(job));
    }
    from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
    return jobs;
  }
};

class FakeHandler : public Handler {
 public:
  explicit FakeHandler(const Executor& executor) : go_on(executor) { go_on.set(); }

  Task<Ended> handle(Job& job, const Hold& hold) override {
    const auto id = job.ticket.id.value;
    begun.push_back(id);
    if (throws_for == id) throw std::runtime_error("should not happen");
    most_at_once = std::max(most_at_once, ++at_once);
    if (waits_first) co_await go_on.wait();
    const bool is_ours = hold.allows(0ms);
    if (!waits_first) co_await go_on.wait();
    --at_once;
    if (!is_ours) co_return Ended{Ended::Then::give_back};
    co_return Ended{Ended::Then::settle, reach(job.ticket.id.value)};
  }
  bool conclude(Job& job, bool counts) override {
    if (cant_conclude == job.ticket.id.value) throw std::runtime_error("should not happen");
    static_cast<TestJob&>(job).counted = counts;
    return counts && last_tries.contains(job.ticket.id.value);
  }

  Signal go_on;
  bool waits_first = false;  // before it asks whether the job is still its own, as in a lookup
  std::int64_t throws_for = 0;
  std::int64_t cant_conclude = 0;
  std::set<std::int64_t> last_tries;
  std::function<std::optional<Reach>(std::int64_t)> reach = [](std::int64_t) { return Reach::reached; };
  std::vector<std::int64_t> begun;
  int at_once = 0;
  int most_at_once = 0;
};

// Fails once where the worker does not expect it: at the call with that number from now on.
class FragileClock : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return std::chrono::system_clock::now(); }
  [[nodiscard]] SteadyTime steady() const override {
    if (calls_left > 0) {
      --calls_left;
      if (calls_left == 0) throw std::runtime_error("the clock broke");
    }
    return std::chrono::steady_clock::now();
  }
  mutable int calls_left = 0;
};

class WorkerTest : public testing::Test {
 protected:
  void begin(WorkerOptions options = {}) {
    if (options.poll_every == WorkerOptions().poll_every) options.poll_every = 5ms;
    options.breaker.pause_first = 50ms;
    worker.emplace(io.get_executor(), options, port, handler, clock, metrics);
    run();
  }
  void run() {
    has_ended = false;
    io.restart();  // a worker that has died leaves it without work
    asio::co_spawn(io, worker->run(), [this](const std::exception_ptr& failure) {
      has_ended = true;
      EXPECT_EQ(failure ? describe(failure) : "", std::exchange(expected_death, ""));
    });
  }
  // Runs until the condition holds.
  bool await(const std::function<bool()>& condition) {
    const auto deadline = Deadline::after(20s);
    while (!condition() && !deadline.passed()) io.run_one_for(10ms);
    return condition();
  }
  void stop() {
    worker->stop();
    ASSERT_TRUE(await([this] { return has_ended; }));
  }
  void TearDown() override {
    if (worker && !has_ended) stop();
  }

  asio::io_context io;
  FragileClock clock;
  metrics::Registry registry;
  WorkerMetrics metrics{
      registry.counter("claimed_total", "Claims."),       registry.counter("lapsed_total", "Lapses."),
      registry.counter("fenced_total", "Fences."),        registry.histogram("claim_seconds", "Time.", {1}),
      registry.histogram("commit_seconds", "Time.", {1}), registry.gauge("breaker", "State.")};
  FakePort port;
  FakeHandler handler{io.get_executor()};
  std::optional<Worker> worker;
  bool has_ended = false;
  std::string expected_death;  // what run() throws; empty: it returns
};

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
  handler.last_tries = {1, 2};
  handler.reach = [](std::int64_t) { return Reach::unreachable; };
  begin({.concurrency = 1});
  ASSERT_TRUE(await([this] { return port.settled.size() == 5; }));
  EXPECT_TRUE(port.uncounted.contains(1));
  EXPECT_TRUE(port.uncounted.contains(2));
  EXPECT_EQ(port.refunded.count(1) + port.refunded.count(2), 0U);
}

TEST_F(WorkerTest, ALastTryStandsWhenAnotherJobHasReachedSomebody) {
  port.pending = {1, 2};
  handler.last_tries = {1};
  handler.reach = [](std::int64_t id) { return id == 1 ? Reach::unreachable : Reach::reached; };
  begin({.concurrency = 1});
  ASSERT_TRUE(await([this] { return port.settled.size() == 2; }));
  EXPECT_THAT(port.settled, ElementsAre(2, 1));
  EXPECT_THAT(port.uncounted, IsEmpty());
}

TEST_F(WorkerTest, ALastTryStandsWhenNothingElseIsUnderWay) {
  port.pending = {1};
  handler.last_tries = {1};
  handler.reach = [](std::int64_t) { return Reach::unreachable; };
  begin();
  ASSERT_TRUE(await([this] { return port.settled.size() == 1; }));
  EXPECT_THAT(port.uncounted, IsEmpty());
}

TEST_F(WorkerTest, ALastTryThatWaitsForOthersIsSettledAtTheStop) {
  port.pending = {1, 2, 3};
  handler.last_tries = {1};
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
  EXPECT_THAT(port.settled, ElementsAre(1));
  EXPECT_THAT(port.given_back, UnorderedElementsAre(2));
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

TEST_F(WorkerTest, FinishedRowsAreArchivedWhileItRuns) {
  begin({.archive_every = 5ms});
  EXPECT_TRUE(await([this] { return port.archived >= 3; }));
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
}  // namespace todoke::queue
