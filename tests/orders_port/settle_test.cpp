// One call settles a batch and returns a fate for each order.
#include <memory>
#include <optional>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/sql_session.hpp"
#include "harness/test_database.hpp"
#include "orders/worker/sql_port.hpp"

namespace todoke::test {
namespace {

using namespace std::chrono_literals;
using orders::OrderJob;
using queue::Fate;
using queue::Lease;
using queue::RowStatus;
using testing::ElementsAre;

class SettleTest : public testing::Test {
 protected:
  SettleTest() : sql_(db_.url()) {
    sql_.run("SET orders.actor = 'test'");
    pg::PoolOptions pool;
    pool.connect.url = db_.url();
    pg::ListenerOptions listener;
    listener.connect.url = db_.url();
    pool_ = std::make_unique<pg::Pool>(pool, clock_, registry_);
    listener_ = std::make_unique<pg::Listener>(io_.get_executor(), listener, registry_);
    halts_ = std::make_unique<orders::Halts>(io_.get_executor(), *pool_, *listener_, clock_, registry_);
    orders::SqlPortOptions options;
    options.worker = "one";
    options.adapter = "paper";
    port_.emplace(pool.connect, options, *halts_, clock_, metrics_);
  }
  ~SettleTest() override {
    port_->close();
    pool_->close();
  }

  template <class Value>
  Value call(Task<Value> task) {
    std::optional<Value> value;
    std::exception_ptr failure;
    io_.restart();
    asio::co_spawn(io_, std::move(task), [&](const std::exception_ptr& thrown, Value result) {
      failure = thrown;
      if (!thrown) value = std::move(result);
    });
    io_.run();
    if (failure) std::rethrow_exception(failure);
    return std::move(*value);
  }

  void add(const std::string& key) {
    sql_.run(
        "INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest, attempts, "
        "in_doubt,"
        " next_run_at, last_error_code) VALUES ('" +
        key +
        "', '{\"instrument\": \"BTC-USD\"}', 'own', 2, true,"
        " now() - interval '1 minute', 'BROKER_DOWN')");
    sql_.run("INSERT INTO orders.idempo_ledger (idempotency_key, request_digest) VALUES ('" + key +
             "', 'own')");
  }
  // Adds and claims so many orders: key-1, key-2 …
  queue::Jobs claim(int count) {
    for (int i = 1; i <= count; ++i) add("key-" + std::to_string(i));
    auto jobs = call(port_->claim(100));
    EXPECT_EQ(jobs.size(), static_cast<std::size_t>(count));
    return jobs;
  }
  static OrderJob& order(const queue::JobPtr& job) { return static_cast<OrderJob&>(*job); }
  // As the handler and the worker leave a job whose try has ended.
  static void end(const queue::JobPtr& job, RowStatus status) {
    auto& one = order(job);
    one.tried = orders::TryRecord{"id", SystemTime(1s), SystemTime(2s), 1s, "outcome", std::nullopt, ""};
    one.error_code = status == RowStatus::succeeded ? "" : "BROKER_TIMEOUT";
    one.verdict = {status, one.row.attempts + (status == RowStatus::succeeded ? 0 : 1), false, std::nullopt};
    if (status == RowStatus::failed) one.verdict.delay = 5s;
    if (is_over(status)) {
      one.http_status = 200;
      one.payload = R"({"reason_code": "FROM_THE_TRY"})";
      one.result_digest = "digest";
    }
  }
  std::vector<Fate> settle(const queue::Jobs& jobs) { return call(port_->settle(jobs)); }

  std::string row(const std::string& key = "key-1") {
    return sql_.value(
        "SELECT status, attempts, last_error_code, in_doubt, locked_by IS NULL FROM orders.outbox_orders"
        " WHERE idempotency_key = '" +
        key + "'");
  }
  std::string ledger(const std::string& key = "key-1") {
    return sql_.value(
        "SELECT status, http_status, result_digest FROM orders.idempo_ledger WHERE idempotency_key = '" +
        key + "'");
  }
  Rows journal() {
    return sql_.run("SELECT key_hash, claim_no, outcome, fenced FROM orders.sends ORDER BY outbox_id");
  }
  std::string hash(const std::string& key) { return sql_.value("SELECT orders.key_hash('" + key + "')"); }

  TestDatabase db_;
  SqlSession sql_;
  asio::io_context io_;
  SystemClock clock_;
  metrics::Registry registry_;
  orders::OrderMetrics metrics_{registry_, 6, "paper"};
  std::unique_ptr<pg::Pool> pool_;
  std::unique_ptr<pg::Listener> listener_;
  std::unique_ptr<orders::Halts> halts_;
  std::optional<orders::SqlPort> port_;
};

TEST_F(SettleTest, ASuccessEndsRowAndLedgerAndIsJournaled) {
  const auto jobs = claim(1);
  end(jobs[0], RowStatus::succeeded);
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), "succeeded|2||f|t");
  EXPECT_EQ(ledger(), "succeeded|200|digest");
  EXPECT_THAT(journal(), ElementsAre(hash("key-1") + "|1|outcome|f"));
  EXPECT_EQ(metrics_.succeeded.value(), 1U);
}

TEST_F(SettleTest, AnAbortedOrderHasAFailedLedger) {
  const auto jobs = claim(1);
  end(jobs[0], RowStatus::aborted);
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), "aborted|3|BROKER_TIMEOUT|f|t");
  EXPECT_EQ(ledger(), "failed|200|digest");
}

TEST_F(SettleTest, AnOrderThatWaitsForItsNextTryLeavesTheLedgerOpen) {
  const auto jobs = claim(1);
  end(jobs[0], RowStatus::failed);
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), "failed|3|BROKER_TIMEOUT|f|t");
  EXPECT_EQ(ledger(), "accepted||");
  EXPECT_EQ(sql_.value("SELECT next_run_at > now() + interval '4 s' FROM orders.outbox_orders"), "t");
}

TEST_F(SettleTest, AnOrderThatIsGivenBackIsAsItWasBeforeTheClaim) {
  add("key-1");
  const auto* const kRow = "SELECT to_jsonb(o) - 'claim_no' - 'updated_at' FROM orders.outbox_orders o";
  // The claim makes it pending, and settling, too.
  const auto before = sql_.value(kRow);
  const auto jobs = call(port_->claim(100));
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(sql_.value(kRow), before);
  EXPECT_EQ(ledger(), "accepted||");
  EXPECT_THAT(journal(), testing::IsEmpty());
}

TEST_F(SettleTest, EachOrderOfABatchHasAFateOfItsOwn) {
  const auto jobs = claim(4);
  for (const auto& job : jobs) end(job, RowStatus::succeeded);
  sql_.run("UPDATE orders.outbox_orders SET claim_no = 2, locked_by = 'two' WHERE idempotency_key = 'key-2'");
  SqlSession other(db_.url());
  other.run("BEGIN; SELECT FROM orders.outbox_orders WHERE idempotency_key = 'key-3' FOR UPDATE");
  // In the order of the jobs, and not of their ids.
  const queue::Jobs turned{jobs[3], jobs[2], jobs[1], jobs[0]};
  EXPECT_THAT(settle(turned), ElementsAre(Fate::settled, Fate::locked, Fate::lost, Fate::settled));
  EXPECT_EQ(row("key-2"), "sending|2|BROKER_DOWN|t|f");
  EXPECT_EQ(ledger("key-2"), "accepted||");
  EXPECT_EQ(ledger("key-3"), "accepted||");
  EXPECT_THAT(journal(), ElementsAre(hash("key-1") + "|1|outcome|f", hash("key-2") + "|1|outcome|t",
                                     hash("key-4") + "|1|outcome|f"));
  other.run("COMMIT");
  EXPECT_THAT(settle({jobs[2]}), ElementsAre(Fate::settled));
  EXPECT_EQ(row("key-3"), "succeeded|2||f|t");
}

TEST_F(SettleTest, ATryThatLostItsOrderIsJournaledOnceHoweverOftenItIsAsked) {
  const auto jobs = claim(1);
  end(jobs[0], RowStatus::succeeded);
  sql_.run("UPDATE orders.outbox_orders SET claim_no = 2");
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::lost));
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::lost));
  EXPECT_THAT(journal(), ElementsAre(hash("key-1") + "|1|outcome|t"));
}

TEST_F(SettleTest, ASettlingWhoseAnswerWasLostIsKnownByTheJournal) {
  const auto jobs = claim(1);
  end(jobs[0], RowStatus::failed);
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  const auto after_first = row();
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), after_first);
  EXPECT_THAT(journal(), ElementsAre(hash("key-1") + "|1|outcome|f"));
}

TEST_F(SettleTest, ALedgerThatIsMissingIsMade) {
  const auto jobs = claim(1);
  end(jobs[0], RowStatus::succeeded);
  sql_.run("DELETE FROM orders.idempo_ledger");
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), "succeeded|2||f|t");
  EXPECT_EQ(ledger(), "succeeded|200|digest");
}

TEST_F(SettleTest, ALedgerThatHasSucceededMeanwhileIsFollowedAndNotWritten) {
  const auto jobs = claim(1);
  end(jobs[0], RowStatus::aborted);
  sql_.run("UPDATE orders.idempo_ledger SET status = 'succeeded', result_digest = 'first'");
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), "succeeded|2||f|t");
  EXPECT_EQ(ledger(), "succeeded||first");
  EXPECT_THAT(journal(), ElementsAre(hash("key-1") + "|1|outcome|f"));
  EXPECT_EQ(metrics_.synced.value(), 1U);
}

TEST_F(SettleTest, AKeyThatBelongsToAnotherContentAbortsTheOrderAndLeavesTheLedger) {
  const auto jobs = claim(1);
  end(jobs[0], RowStatus::succeeded);
  sql_.run("UPDATE orders.idempo_ledger SET request_digest = 'another'");
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), "aborted|2|IDEMPOTENCY_CONFLICT|t|t");
  EXPECT_EQ(ledger(), "accepted||");
  EXPECT_EQ(metrics_.conflict.value(), 1U);
}

TEST_F(SettleTest, AnOrderThatWasTakenOverFollowsALedgerThatHasFailed) {
  const auto jobs = claim(1);
  order(jobs[0]).row.lapsed = true;
  order(jobs[0]).ledger = orders::LedgerState::failed;
  sql_.run(
      "UPDATE orders.idempo_ledger SET status = 'failed', response_payload_json = '{\"reason_code\": "
      "\"BROKER_REJECTED\"}'");
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), "aborted|2|BROKER_REJECTED|t|t");
}

TEST_F(SettleTest, AnOrderWhoseLedgerIsOpenAgainIsGivenBack) {
  const auto jobs = claim(1);
  order(jobs[0]).row.lapsed = true;
  order(jobs[0]).ledger = orders::LedgerState::failed;
  EXPECT_THAT(settle(jobs), ElementsAre(Fate::settled));
  EXPECT_EQ(row(), "pending|2|BROKER_DOWN|t|t");
  EXPECT_EQ(metrics_.synced.value(), 0U);
}

TEST_F(SettleTest, AHeartbeatTellsWhatBecameOfEachLease) {
  const auto jobs = claim(3);
  sql_.run("UPDATE orders.outbox_orders SET locked_at = now() - interval '1 minute'");
  sql_.run("UPDATE orders.outbox_orders SET claim_no = 2 WHERE idempotency_key = 'key-2'");
  SqlSession other(db_.url());
  other.run("BEGIN; SELECT FROM orders.outbox_orders WHERE idempotency_key = 'key-3' FOR UPDATE");
  EXPECT_THAT(call(port_->heartbeat({jobs[0]->ticket, jobs[1]->ticket, jobs[2]->ticket})),
              ElementsAre(Lease::renewed, Lease::lost, Lease::runs_on));
  EXPECT_THAT(sql_.run("SELECT locked_at > now() - interval '30 s' FROM orders.outbox_orders ORDER BY id"),
              ElementsAre("t", "f", "f"));
}

}  // namespace
}  // namespace todoke::test
