// Background jobs: done, told, cancelled, repeated, resumed after a kill.
#include "jobs/runner.hpp"

#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/sql_session.hpp"
#include "harness/test_database.hpp"
#include "harness/todoke_process.hpp"
#include "jobs/counting.hpp"
#include "jobs/history.hpp"

namespace todoke::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class JobsTest : public testing::Test {
 protected:
  JobsTest() : sql_(db_.url()) {
    sql_.run(kCountedTable);
    pg::PoolOptions options;
    options.connect.url = db_.url();
    pool_ = std::make_unique<pg::Pool>(options, clock_, registry_);
    pg::ListenerOptions listens;
    listens.connect.url = db_.url();
    listener_ = std::make_unique<pg::Listener>(io_.get_executor(), listens, registry_);
    kinds_.add(counting(*pool_));
    kinds_.add({"test.refuse", [](jobs::Run&) -> Task<Expected<std::string>> {
                  co_return refuse("there is no such topic");
                }});
    kinds_.add({"test.throw", [this](jobs::Run&) -> Task<Expected<std::string>> {
                  ++thrown_;
                  throw std::runtime_error("the other end is away");
                  co_return "";
                }});
    options_.poll_every = 5ms;
    options_.retry_after = {0s, 0s};
  }
  ~JobsTest() override {
    stop();
    pool_->close();
    while (io_.poll() > 0) {
    }
  }

  void begin() {
    runner_.emplace(io_.get_executor(), kinds_, options_, *pool_, *listener_, clock_, registry_);
    launch(listener_->start());
    EXPECT_TRUE(await([this] { return running_ == 0; }));
    launch(listener_->run());
    launch(runner_->start());
    launch(runner_->run());
  }
  void stop() {
    if (!runner_) return;
    runner_->stop();
    EXPECT_TRUE(await([this] { return running_ == 1; }));
    listener_->stop();
    EXPECT_TRUE(await([this] { return running_ == 0; }));
    runner_.reset();
  }
  void launch(Task<void> work) {
    ++running_;
    asio::co_spawn(io_, std::move(work), [this](const std::exception_ptr& failure) {
      --running_;
      EXPECT_EQ(failure ? describe(failure) : "", "");
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
  bool await_value(const std::string& statement, const std::string& value) {
    const bool came = await([&] { return sql_.value(statement) == value; });
    if (!came) ADD_FAILURE() << sql_.value(statement);
    return came;
  }
  std::string add(const std::string& kind, const std::string& params = "{}",
                  const std::string& subject = "") {
    return sql_.value("SELECT cn_admin.add_job('" + kind + "', '" + subject + "', '" + params + "')");
  }

  TestDatabase db_;
  SqlSession sql_;
  asio::io_context io_;
  SystemClock clock_;
  metrics::Registry registry_;
  std::unique_ptr<pg::Pool> pool_;
  std::unique_ptr<pg::Listener> listener_;
  jobs::Kinds kinds_;
  jobs::RunnerOptions options_;
  std::optional<jobs::Runner> runner_;
  int running_ = 0;
  int thrown_ = 0;
};

constexpr const char* kShown =
    "SELECT status, done, total, result, error, started_at IS NOT NULL, finished_at IS NOT NULL FROM "
    "cn_admin.jobs";

TEST_F(JobsTest, AJobLeavesItsProgressAndItsResultInItsRow) {
  begin();
  add("test.count", R"({"to": 3})");
  EXPECT_TRUE(await_value(kShown, R"(succeeded|3|3|{"at": 3}||t|t)"));
}

TEST_F(JobsTest, ANotificationWakesTheRunner) {
  options_.poll_every = 1h;
  add("test.count", R"({"to": 1})");
  begin();
  EXPECT_TRUE(await_value("SELECT count(*) FROM cn_admin.jobs WHERE status = 'succeeded'", "1"));
  add("test.count", R"({"to": 1})");
  EXPECT_TRUE(await_value("SELECT count(*) FROM cn_admin.jobs WHERE status = 'succeeded'", "2"));
}

TEST_F(JobsTest, ARefusedJobIsAbortedWithTheReason) {
  add("test.refuse");
  begin();
  EXPECT_TRUE(await_value(kShown, "aborted|0|||there is no such topic|t|t"));
}

TEST_F(JobsTest, AFailureIsTriedAgainUntilTheTriesAreUsedUp) {
  add("test.throw");
  begin();
  EXPECT_TRUE(await_value(kShown, "aborted|0|||the other end is away|t|t"));
  EXPECT_EQ(thrown_, 3);
}

TEST_F(JobsTest, AKindThatThisProcessDoesNotKnowIsLeftToOthers) {
  add("test.other");
  add("test.count", R"({"to": 1})");
  begin();
  EXPECT_TRUE(await_value("SELECT string_agg(kind || ' ' || status, ',' ORDER BY id) FROM cn_admin.jobs",
                          "test.other pending,test.count succeeded"));
}

TEST_F(JobsTest, NoMoreRunAtATimeThanMay) {
  for (int i = 0; i < 4; ++i) add("test.count", R"({"to": 2, "hold": 1})");
  begin();
  EXPECT_TRUE(await_value("SELECT count(DISTINCT job) FROM counted", "2"));
  EXPECT_EQ(sql_.value("SELECT count(*) FROM cn_admin.jobs WHERE status = 'pending'"), "2");
}

TEST_F(JobsTest, ACancelledJobEndsAtItsNextPieceOfWork) {
  add("test.count", R"({"to": 9, "hold": 4})");
  begin();
  EXPECT_TRUE(await_value("SELECT done FROM cn_admin.jobs", "4"));
  sql_.run("UPDATE cn_admin.jobs SET cancel_asked_at = now()");
  EXPECT_TRUE(await_value(kShown, "cancelled|4|9|||t|t"));
  EXPECT_EQ(sql_.value("SELECT max(n) FROM counted"), "4");
}

TEST_F(JobsTest, AStopGivesAJobBackWithItsStateAndTheNextRunnerGoesOn) {
  add("test.count", R"({"to": 6, "hold": 3})");
  begin();
  EXPECT_TRUE(await_value("SELECT done FROM cn_admin.jobs", "3"));
  stop();
  EXPECT_EQ(sql_.value("SELECT status, attempts, state FROM cn_admin.jobs"), R"(pending|0|{"at": 3})");
  begin();
  EXPECT_TRUE(await_value("SELECT status, done FROM cn_admin.jobs", "succeeded|6"));
  EXPECT_EQ(sql_.value("SELECT array_agg(n ORDER BY n) FROM counted"), "{1,2,3,4,5,6}");
}

TEST_F(JobsTest, AJobThatIsAskedForAgainWhileItRunsBeginsAnewWhenItHasEnded) {
  add("test.count", R"({"to": 3, "hold": 2})", "a topic");
  begin();
  EXPECT_TRUE(await_value("SELECT done FROM cn_admin.jobs", "2"));
  EXPECT_EQ(add("test.count", R"({"to": 3, "hold": 2})", "a topic"), "1");
  sql_.run("UPDATE cn_admin.jobs SET params = '{\"to\": 3}'");
  sql_.run("UPDATE cn_admin.jobs SET cancel_asked_at = now()");  // lets go of the hold
  EXPECT_TRUE(await_value("SELECT status, done, asked_again FROM cn_admin.jobs", "succeeded|3|f"));
  EXPECT_EQ(sql_.value("SELECT array_agg(n) FROM counted"), "{1,2,1,2,3}");
}

TEST_F(JobsTest, AKilledProcessLosesItsJobToTheNextWhichGoesOnWhereItWas) {
  add("test.count", R"({"to": 6, "hold": 3})");
  {
    ChildProcess host({JOBS_HOST, db_.url()}, {});
    EXPECT_TRUE(await_value("SELECT done FROM cn_admin.jobs", "3"));
    host.kill(SIGKILL);
    EXPECT_EQ(host.wait().signal, SIGKILL);
  }
  EXPECT_EQ(sql_.value("SELECT status FROM cn_admin.jobs"), "running");
  sql_.run("UPDATE cn_admin.jobs SET params = '{\"to\": 6}', locked_at = now() - interval '31 s'");
  begin();
  EXPECT_TRUE(await_value("SELECT status, done, claim_no FROM cn_admin.jobs", "succeeded|6|2"));
  EXPECT_EQ(sql_.value("SELECT array_agg(n) FROM counted"), "{1,2,3,4,5,6}");
}

TEST_F(JobsTest, AJobThatKillsItsProcessInEveryTryIsGivenUp) {
  add("test.count", R"({"to": 1})");
  sql_.run(
      "UPDATE cn_admin.jobs SET status = 'running', attempts = 2, claim_no = 1, locked_by = 'gone',"
      " locked_at = now() - interval '31 s'");
  begin();
  EXPECT_TRUE(
      await_value("SELECT status, error FROM cn_admin.jobs", "aborted|the process died in each of 3 tries"));
  EXPECT_EQ(sql_.value("SELECT count(*) FROM counted"), "0");
}

TEST_F(JobsTest, HistoryKeepsWhatIsOpenAndWhatEndedWithinItsPeriod) {
  sql_.run(
      "INSERT INTO cn_admin.jobs (kind, subject, status, finished_at, created_at) VALUES"
      " ('a', 'old', 'succeeded', now() - interval '31 days', now() - interval '31 days'),"
      " ('a', 'late', 'aborted', now() - interval '29 days', now() - interval '90 days'),"
      " ('a', 'open', 'failed', NULL, now() - interval '90 days')");
  jobs::History history(io_.get_executor(), {}, *pool_, registry_);
  launch(history.run());
  EXPECT_TRUE(
      await_value("SELECT array_agg(subject::text ORDER BY subject) FROM cn_admin.jobs", "{late,open}"));
  history.stop();
  EXPECT_TRUE(await([this] { return running_ == 0; }));
}

}  // namespace
}  // namespace todoke::test
