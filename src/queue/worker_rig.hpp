// A worker on a table in memory, with a handler that a test tells what to do.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "queue/worker.hpp"

namespace todoke::queue::test {

using namespace std::chrono_literals;

// A table in memory.
class FakePort : public Port {
 public:
  Task<Jobs> claim(std::size_t most) override {
    ++claims;
    if (claim_gate != nullptr) co_await claim_gate->wait();
    auto jobs = first_of(pending, most);
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
    auto jobs = first_of(lapsed, most);
    for (const auto& job : jobs) job->row.lapsed = true;
    co_return jobs;
  }
  Task<std::vector<Fate>> settle(const Jobs& jobs) override {
    if (on_settle) on_settle();
    if (settle_failures > 0) {
      --settle_failures;
      throw std::runtime_error("the database is away");
    }
    batches.push_back(jobs.size());
    std::vector<Fate> fates;
    for (const auto& job : jobs) fates.push_back(settle_one(*job));
    co_return fates;
  }
  Task<void> uncount(const std::map<JobId, int>& tries) override {
    for (const auto& [id, count] : tries) refunded[id.value] += count;
    co_return;
  }
  Task<std::vector<Lease>> heartbeat(const std::vector<Ticket>& tickets) override {
    ++beats;
    std::vector<Lease> leases;
    for (const auto& ticket : tickets) {
      const auto id = ticket.id.value;
      leases.push_back(stolen.contains(id)   ? Lease::lost
                       : locked.contains(id) ? Lease::runs_on
                                             : Lease::renewed);
    }
    co_return leases;
  }

  std::vector<std::int64_t> pending;
  std::vector<std::int64_t> lapsed;
  std::map<std::int64_t, int> attempts;  // that rows have behind them when they are claimed
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
  std::vector<std::int64_t> settled;
  std::set<std::int64_t> uncounted;  // settled as failures that did not count
  std::vector<std::size_t> batches;
  std::set<std::int64_t> given_back;
  std::map<std::int64_t, int> refunded;

 private:
  Fate settle_one(const Job& job) {
    const auto id = job.ticket.id.value;
    if (stolen.contains(id)) return Fate::lost;
    if (locked.contains(id)) return Fate::locked;
    if (job.verdict.status == RowStatus::pending) {
      given_back.insert(id);
      return Fate::settled;
    }
    settled.push_back(id);
    const bool is_failure = job.verdict.status != RowStatus::succeeded;
    if (is_failure && job.verdict.attempts == job.row.attempts) uncounted.insert(id);
    return Fate::settled;
  }

  Jobs first_of(std::vector<std::int64_t>& from, std::size_t most) {
    Jobs jobs;
    const auto count = std::min(most, from.size());
    for (std::size_t i = 0; i < count; ++i) {
      auto job = std::make_shared<Job>();
      job->ticket = {{from[i]}, {++last_claim_}};
      job->row.attempts = attempts[from[i]];
      jobs.push_back(std::move(job));
    }
    from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
    return jobs;
  }

  std::int64_t last_claim_ = 0;
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
    if (!is_ours) co_return Ended{.outcome = {.kind = Outcome::Kind::untouched}};
    const auto reached = reach(job.ticket.id.value);
    const bool found_nobody = reached == Reach::unreachable;
    co_return Ended{{.kind = found_nobody ? Outcome::Kind::transient : Outcome::Kind::done}, reached};
  }
  void on_verdict(Job& job) override {
    if (cant_conclude == job.ticket.id.value) throw std::runtime_error("should not happen");
  }

  Signal go_on;
  bool waits_first = false;  // before it asks whether the job is still its own, as in a lookup
  std::int64_t throws_for = 0;
  std::int64_t cant_conclude = 0;
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
      registry.counter("claimed_total", "Claims."),    registry.counter("lapsed_total", "Lapses."),
      registry.counter("fenced_total", "Fences."),     registry.histogram("claim_time", "Time.", {1}),
      registry.histogram("commit_time", "Time.", {1}), registry.gauge("breaker", "State.")};
  FakePort port;
  FakeHandler handler{io.get_executor()};
  std::optional<Worker> worker;
  bool has_ended = false;
  std::string expected_death;  // what run() throws; empty: it returns
};

}  // namespace todoke::queue::test
