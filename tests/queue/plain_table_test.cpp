// A worker over a plain table of jobs in a real Postgres.
#include <functional>
#include <memory>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/sql_session.hpp"
#include "harness/test_database.hpp"
#include "queue/plain_port.hpp"
#include "queue/worker.hpp"

namespace todoke::test {
namespace {

using namespace std::chrono_literals;
using queue::Outcome;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

// Does what the task says; "wait" ends when the test says so.
class TaskHandler final : public queue::Handler {
 public:
  explicit TaskHandler(const Executor& executor) : go_on(executor) {}

  Task<Ended> handle(queue::Job& job, const queue::Hold& /*hold*/) override {
    const auto& task = static_cast<const TaskJob&>(job).task;
    begun.push_back(task);
    if (task == "wait") co_await go_on.wait();
    if (task == "fail" || (task == "fail once" && job.row.attempts == 0)) {
      co_return Ended{{.kind = Outcome::Kind::transient}};
    }
    if (task == "refuse") co_return Ended{{.kind = Outcome::Kind::permanent}};
    co_return Ended{{.kind = Outcome::Kind::done}};
  }

  Signal go_on;
  std::vector<std::string> begun;
};

class PlainTableTest : public testing::Test {
 protected:
  PlainTableTest() : sql_(db_.url()) {
    sql_.run(kJobsTable);
    pg::PoolOptions options;
    options.connect.url = db_.url();
    pool_ = std::make_unique<pg::Pool>(options, clock_, registry_);
    port_.emplace(*pool_, "one");
  }
  ~PlainTableTest() override {
    if (worker_) worker_->stop();
    EXPECT_TRUE(await([this] { return !worker_ || has_ended_; }));
    pool_->close();
    while (io_.poll() > 0) {
    }
  }

  void begin(std::chrono::milliseconds lease = 60s) {
    queue::WorkerOptions options{.poll_every = 5ms, .lease = lease, .take_over_every = 5ms};
    options.policy = {.attempts_max = 3, .retry = queue::RetryTable({0s})};
    worker_.emplace(io_.get_executor(), options, *port_, handler_, clock_, metrics_);
    asio::co_spawn(io_, worker_->run(), [this](const std::exception_ptr& failure) {
      has_ended_ = true;
      EXPECT_EQ(failure, nullptr);
    });
  }
  bool await(const std::function<bool()>& condition) {
    const auto deadline = Deadline::after(60s);
    while (!condition() && !deadline.passed()) {
      io_.restart();
      io_.run_one_for(5ms);
    }
    return condition();
  }
  void add(const std::string& task) { sql_.run("INSERT INTO jobs (task) VALUES ('" + task + "')"); }
  Rows table() { return sql_.run("SELECT task, status, attempts FROM jobs ORDER BY id"); }
  bool await_table(const std::vector<std::string>& rows) {
    return await([&] { return table() == rows; });
  }

  TestDatabase db_;
  SqlSession sql_;
  asio::io_context io_;
  SystemClock clock_;
  metrics::Registry registry_;
  queue::WorkerMetrics metrics_{
      registry_.counter("claimed_total", "Claims."),    registry_.counter("lapsed_total", "Lapses."),
      registry_.counter("fenced_total", "Fences."),     registry_.histogram("claim_time", "Time.", {1}),
      registry_.histogram("commit_time", "Time.", {1}), registry_.gauge("breaker", "State.")};
  std::unique_ptr<pg::Pool> pool_;
  std::optional<PlainPort> port_;
  TaskHandler handler_{io_.get_executor()};
  std::optional<queue::Worker> worker_;
  bool has_ended_ = false;
};

TEST_F(PlainTableTest, JobsAreDoneRetriedRefusedAndGivenUp) {
  add("do");
  add("fail once");
  add("refuse");
  add("fail");
  begin();
  EXPECT_TRUE(await_table({"do|succeeded|0", "fail once|succeeded|1", "refuse|aborted|1", "fail|aborted|3"}));
  EXPECT_EQ(handler_.begun.size(), 1U + 2U + 1U + 3U);
}

TEST_F(PlainTableTest, AStopGivesBackWhatWasNotBegunAndSettlesWhatWas) {
  for (int i = 0; i < 6; ++i) add("wait");
  begin();
  ASSERT_TRUE(await([this] { return handler_.begun.size() == 4; }));
  worker_->stop();
  handler_.go_on.set();
  ASSERT_TRUE(await([this] { return has_ended_; }));
  EXPECT_THAT(sql_.run("SELECT status, count(*) FROM jobs GROUP BY 1"),
              UnorderedElementsAre("pending|2", "succeeded|4"));
}

TEST_F(PlainTableTest, HeartbeatsKeepAJobThatTakesLongerThanItsLease) {
  add("wait");
  begin(1500ms);
  ASSERT_TRUE(await([this] { return handler_.begun.size() == 1; }));
  const auto first = sql_.value("SELECT locked_at FROM jobs");
  ASSERT_TRUE(await([&] {
    return sql_.value("SELECT locked_at > '" + first + "'::timestamptz + interval '1500 ms' FROM jobs") ==
           "t";
  }));
  handler_.go_on.set();
  EXPECT_TRUE(await_table({"wait|succeeded|0"}));
  EXPECT_THAT(handler_.begun, ElementsAre("wait"));
}

TEST_F(PlainTableTest, AWorkerWhoseJobWasTakenOverSettlesNothing) {
  add("wait");
  begin();
  ASSERT_TRUE(await([this] { return handler_.begun.size() == 1; }));
  // As another worker does when the lease has lapsed.
  sql_.run("UPDATE jobs SET claim_no = claim_no + 1, locked_by = 'two', locked_at = now()");
  handler_.go_on.set();
  ASSERT_TRUE(await([this] { return metrics_.fenced.value() == 1; }));
  EXPECT_EQ(sql_.value("SELECT status, claim_no, locked_by FROM jobs"), "running|2|two");
}

TEST_F(PlainTableTest, AJobWhoseWorkerVanishedIsTakenOverInDoubtWithItsAttemptCounted) {
  add("do");
  sql_.run(
      "UPDATE jobs SET status = 'running', claim_no = 1, locked_by = 'gone', locked_at = now() - interval '2 "
      "minutes'");
  begin();
  EXPECT_TRUE(await_table({"do|succeeded|1"}));
  EXPECT_EQ(metrics_.lease_expired.value(), 1U);
  EXPECT_EQ(sql_.value("SELECT claim_no FROM jobs"), "2");
}

TEST_F(PlainTableTest, ALostConnectionCostsNoJobAndNoSecondTry) {
  for (int i = 0; i < 3; ++i) add("wait");
  begin();
  ASSERT_TRUE(await([this] { return handler_.begun.size() == 3; }));
  sql_.run(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
      " WHERE datname = current_database() AND pid <> pg_backend_pid()");
  handler_.go_on.set();
  EXPECT_TRUE(await_table({"wait|succeeded|0", "wait|succeeded|0", "wait|succeeded|0"}));
  EXPECT_EQ(handler_.begun.size(), 3U);
  add("do");
  EXPECT_TRUE(await_table({"wait|succeeded|0", "wait|succeeded|0", "wait|succeeded|0", "do|succeeded|0"}));
}

TEST_F(PlainTableTest, ARowThatSomebodyHasLockedHoldsUpNothingButItsOwnSettling) {
  // A port that waits for locks sets a limit to it.
  sql_.run(
      "DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET lock_timeout = ''100ms''', current_database()); "
      "END$$");
  add("wait");
  begin();
  ASSERT_TRUE(await([this] { return handler_.begun.size() == 1; }));
  SqlSession operator_session(db_.url());
  operator_session.run("BEGIN; SELECT FROM jobs WHERE id = 1 FOR UPDATE");
  add("do");
  handler_.go_on.set();
  EXPECT_TRUE(await_table({"wait|running|0", "do|succeeded|0"}));
  operator_session.run("COMMIT");
  EXPECT_TRUE(await_table({"wait|succeeded|0", "do|succeeded|0"}));
  EXPECT_THAT(handler_.begun, ElementsAre("wait", "do"));
}

}  // namespace
}  // namespace todoke::test
