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
    auto jobs = take(pending, most);
    if (jobs.empty() || !std::exchange(lose_claim, false)) co_return jobs;
    for (const auto& job : jobs) lost_claims.push_back(job->ticket.id.value);
    throw std::runtime_error("the answer was lost");
  }
  Task<void> give_back_unknown(const std::vector<Ticket>& held) override {
    for (const auto& ticket : held) held_then.push_back(ticket.id.value);
    for (const auto id : std::exchange(lost_claims, {})) pending.push_back(id);
    co_return;
  }
  Task<Jobs> take_over(std::chrono::milliseconds, std::size_t most) override {
    auto jobs = take(lapsed, most);
    for (const auto& job : jobs) job->row.lapsed = true;
    co_return jobs;
  }
  Task<std::vector<Ticket>> settle(const Jobs& jobs) override {
    if (settle_failures > 0) {
      --settle_failures;
      throw std::runtime_error("the database is away");
    }
    batches.push_back(jobs.size());
    for (const auto& job : jobs) {
      settled.push_back(job->ticket.id.value);
      if (!static_cast<const TestJob&>(*job).counted) uncounted.insert(job->ticket.id.value);
    }
    co_return std::vector<Ticket>{};
  }
  Task<void> give_back(const Jobs& jobs) override {
    for (const auto& job : jobs) given_back.insert(job->ticket.id.value);
    co_return;
  }
  Task<void> refund(const std::map<JobId, int>& tries) override {
    for (const auto& [id, count] : tries) refunded[id.value] += count;
    co_return;
  }
  Task<std::vector<Ticket>> heartbeat(const std::vector<Ticket>& tickets) override {
    ++beats;
    auto kept = tickets;
    std::erase_if(kept, [this](const Ticket& t) { return stolen.contains(t.id.value); });
    co_return kept;
  }
  Task<bool> archive() override {
    ++archived;
    co_return false;
  }

  std::vector<std::int64_t> pending;
  std::vector<std::int64_t> lapsed;
  std::set<std::int64_t> stolen;
  bool lose_claim = false;
  std::vector<std::int64_t> lost_claims;
  std::vector<std::int64_t> held_then;
  int settle_failures = 0;
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
    begun.push_back(job.ticket.id.value);
    most_at_once = std::max(most_at_once, ++at_once);
    co_await go_on.wait();
    --at_once;
    if (!hold.allows(0ms)) co_return Ended{Ended::Then::give_back};
    co_return Ended{Ended::Then::settle, reach(job.ticket.id.value)};
  }
  void conclude(Job& job, bool counts) override { static_cast<TestJob&>(job).counted = counts; }

  Signal go_on;
  std::function<std::optional<Reach>(std::int64_t)> reach = [](std::int64_t) { return Reach::reached; };
  std::vector<std::int64_t> begun;
  int at_once = 0;
  int most_at_once = 0;
};

class WorkerTest : public testing::Test {
 protected:
  void begin(WorkerOptions options = {}) {
    options.poll_every = 5ms;
    options.breaker.pause_first = 50ms;
    worker.emplace(io.get_executor(), options, port, handler, clock, metrics);
    asio::co_spawn(io, worker->run(), [this](const std::exception_ptr& failure) {
      has_ended = true;
      EXPECT_FALSE(failure);
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
  SystemClock clock;
  metrics::Registry registry;
  WorkerMetrics metrics{registry.counter("claimed_total", ""),    registry.counter("lapsed_total", ""),
                        registry.counter("fenced_total", ""),     registry.histogram("claim_ms", "", {1}),
                        registry.histogram("commit_ms", "", {1}), registry.gauge("breaker", "")};
  FakePort port;
  FakeHandler handler{io.get_executor()};
  std::optional<Worker> worker;
  bool has_ended = false;
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

TEST_F(WorkerTest, RowsWhoseClaimWasNotHeardOfAreGivenBackAndClaimedAgain) {
  port.pending = {1, 2};
  port.lose_claim = true;
  begin();
  ASSERT_TRUE(await([this] { return port.settled.size() == 2; }));
  EXPECT_THAT(handler.begun, UnorderedElementsAre(1, 2));
  EXPECT_THAT(port.held_then, IsEmpty());
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

}  // namespace
}  // namespace todoke::queue
