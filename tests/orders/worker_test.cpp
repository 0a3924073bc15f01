// Workers as processes: zombies, several of them, stop, settings, outage, kill switch, order between orders.
#include <fstream>

#include <fmt/format.h>

#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

TEST_F(OrdersTest, AWorkerStoppedBeyondItsLeaseSettlesNothingWhenItGoesOn) {
  const auto zombie =
      node({"TODOKE_BROKER_PAPER_LATENCY_MS=1500", "BROKER_TIMEOUT_MS=20000", "OUTBOX_LOCK_LEASE_SEC=60"});
  accept("zombie-key");
  await_status("zombie-key", "sending");
  zombie->process().kill(SIGSTOP);
  const auto heir = node();
  await_status("zombie-key", "succeeded");
  const auto settled = of("zombie-key", "concat_ws(',', claim_no, attempts, updated_at)");
  const auto result = ledger("zombie-key", "concat_ws(',', last_seen_at, response_payload_json::text)");
  zombie->process().kill(SIGCONT);
  zombie->wait_for_metric("outbox_fenced_total", 1);
  EXPECT_EQ(of("zombie-key", "concat_ws(',', claim_no, attempts, updated_at)"), settled);
  EXPECT_EQ(ledger("zombie-key", "concat_ws(',', last_seen_at, response_payload_json::text)"), result);
  EXPECT_EQ(value("SELECT string_agg(outcome || CASE WHEN fenced THEN ' fenced' ELSE '' END, ', ' ORDER BY "
                  "written_at)"
                  " FROM orders.sends"),
            "LEASE_EXPIRED, ok, FOUND fenced");
  EXPECT_EQ(value("SELECT count(*) FROM orders.paper_book"), "1");
}

TEST_F(OrdersTest, ManyWorkersSettleEveryOrderOnceAndNothingIsSentTwice) {
  constexpr int kOrders = 300;
  auto environment = kPatient;
  environment.emplace_back("OUTBOX_CONCURRENCY=8");
  const auto one = node(environment);
  const auto two = node(environment);
  for (int i = 0; i < kOrders; ++i) accept(fmt::format("many-key-{}", i));
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", std::to_string(kOrders));
  EXPECT_EQ(value("SELECT max(claim_no) FROM orders.outbox_orders"), "1");
  EXPECT_EQ(value("SELECT concat_ws(',', count(*), max(copies)) FROM orders.paper_book"),
            fmt::format("{},1", kOrders));
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), std::to_string(kOrders));
}

TEST_F(OrdersTest, StoppingGivesUnsentOrdersBackAndSettlesWhatIsUnderWay) {
  PaperHold broker(test_database);
  auto environment = kPatient;
  environment.emplace_back("OUTBOX_CONCURRENCY=1");
  const auto worker = node(environment);
  for (int i = 0; i < 4; ++i) accept(fmt::format("stop-key-{}", i));
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'sending'", "4");
  broker.await_orders(1);
  worker->process().kill(SIGTERM);
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'pending'", "3");
  broker.release();
  EXPECT_EQ(worker->process().wait().code, 0);
  EXPECT_EQ(value("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'"), "1");
  EXPECT_EQ(
      value(
          "SELECT concat_ws(',', sum(attempts), bool_or(in_doubt), max(locked_by)) FROM orders.outbox_orders"
          " WHERE status = 'pending'"),
      "0,f");
  EXPECT_EQ(value("SELECT count(*) FROM orders.workers"), "0");
}

TEST_F(OrdersTest, AnOutageOfTheBrokerAbortsNothing) {
  // Without the breaker each order would use up its three attempts within a second.
  for (int i = 0; i < 20; ++i) accept(fmt::format("outage-key-{}", i));
  const auto worker = node({"TODOKE_BROKER_PAPER_OUTAGE_SEC=6", "OUTBOX_MAX_ATTEMPTS=3"});
  worker->wait_for_metric("outbox_breaker_state{adapter=\"paper\"}", 3);
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "20");
  EXPECT_EQ(value("SELECT count(*) FROM orders.outbox_orders WHERE attempts >= 3"), "0");
  EXPECT_EQ(worker->metric("outbox_processed_total{outcome=\"aborted\"}"), 0);
  worker->wait_for_metric("outbox_breaker_state{adapter=\"paper\"}", 0);
  // Probes only: an outage is not hammered.
  EXPECT_EQ(value("SELECT count(*) < 40 FROM orders.sends WHERE outcome = 'BROKER_DOWN'"), "t");
}

TEST_F(OrdersTest, AHaltHoldsOrdersUntilItIsLifted) {
  const auto worker = node();
  run("INSERT INTO orders.halts (instrument, halted_by) VALUES ('BTC-USD', 'test')");
  worker->process().wait_for_output("\"msg\":\"halts changed\"");
  accept("halted-key");
  accept("free-key", "ETH-USD");
  await_status("free-key", "succeeded");
  EXPECT_EQ(of("halted-key", "concat_ws(',', status, attempts)"), "pending,0");
  run("DELETE FROM orders.halts");
  await_status("halted-key", "succeeded");
}

TEST_F(OrdersTest, AHaltOfEverythingStopsOrdersThatAreClaimedAlready) {
  auto environment = kPatient;
  environment.insert(environment.end(), {"TODOKE_BROKER_PAPER_LATENCY_MS=300", "OUTBOX_CONCURRENCY=1"});
  const auto worker = node(environment);
  for (int i = 0; i < 20; ++i) accept(fmt::format("kill-key-{:02}", i));
  await("SELECT count(*) > 0 FROM orders.sends", "t");
  run("INSERT INTO orders.halts (halted_by) VALUES ('test')");
  worker->process().wait_for_output("\"msg\":\"halts changed\"");
  const auto halted_at = value("SELECT clock_timestamp()");
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'sending'", "0");
  EXPECT_EQ(value(fmt::format("SELECT count(*) FROM orders.sends WHERE began_at > '{}'", halted_at)), "0");
  EXPECT_EQ(value("SELECT count(*) > 0 FROM orders.outbox_orders WHERE status = 'pending'"), "t");
  EXPECT_EQ(value("SELECT sum(attempts) FROM orders.outbox_orders"), "0");
}

TEST_F(OrdersTest, AnOrderThatIsTooOldIsNotSent) {
  accept("stale-key");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET created_at = now() - interval '1 hour'; "
      "RESET orders.actor");
  const auto worker = node({"TODOKE_ORDERS_MAX_AGE_SEC_IOC=60"});
  await_status("stale-key", "aborted");
  EXPECT_EQ(of("stale-key", "concat_ws(',', attempts, last_error_code)"), "0,ORDER_EXPIRED");
  EXPECT_EQ(ledger("stale-key", "concat_ws(',', status, http_status)"), "failed,410");
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "0");
}

TEST_F(OrdersTest, RiskThatTheBrokerCantEnforceIsAWarningOrARefusal) {
  const auto constrain = [this](const std::string& key) {
    accept(key);
    run(fmt::format(
        "SET orders.actor = 'test'; UPDATE orders.outbox_orders SET order_request_json = order_request_json"
        " || '{{\"risk_constraints\": {{\"max_spread\": 1}}}}' WHERE idempotency_key = '{}';"
        "RESET orders.actor",
        key));
  };
  constrain("risk-key-1");
  auto worker = node();
  await_status("risk-key-1", "succeeded");
  EXPECT_EQ(ledger("risk-key-1", "response_payload_json ->> 'warnings'"), "[\"RISK_NOT_ENFORCED\"]");
  worker->stop();
  constrain("risk-key-2");
  worker = node({"TODOKE_ORDERS_RISK=strict"});
  await_status("risk-key-2", "aborted");
  EXPECT_EQ(of("risk-key-2", "concat_ws(',', last_error_code, attempts)"), "VALIDATION_ERROR,0");
}

TEST_F(OrdersTest, AClaimWhoseAnswerWasLostIsGivenBackUncounted) {
  // As if: a row that stands under the worker's name, of which it knows nothing.
  const auto worker = node({"OUTBOX_LOCK_LEASE_SEC=600"});
  accept("unheard-key");
  await_status("unheard-key", "succeeded");
  run("SET orders.actor = 'test'; DELETE FROM orders.paper_book;"
      "UPDATE orders.outbox_orders SET status = 'sending', locked_at = now(),"
      " locked_by = (SELECT worker FROM orders.workers);"
      "UPDATE orders.idempo_ledger SET status = 'accepted'; RESET orders.actor");
  // A claim that fails makes the worker look for such rows.
  run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'todoke orders'"
      " AND datname = current_database()");
  await_status("unheard-key", "succeeded");
  EXPECT_EQ(of("unheard-key", "concat_ws(',', attempts, claim_no)"), "0,2");
}

TEST_F(OrdersTest, SerializedOrdersOfAnInstrumentAreSentOneAfterTheOtherAcrossWorkers) {
  const Environment in_order{"TODOKE_ORDERS_SERIALIZE_BY=instrument", "TODOKE_BROKER_PAPER_LATENCY_MS=20"};
  for (int i = 0; i < 8; ++i) {
    accept(fmt::format("btc-key-{}", i));
    accept(fmt::format("eth-key-{}", i), "ETH-USD");
  }
  const auto one = node(in_order);
  const auto two = node(in_order);
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "16");
  // No try began before the earlier order of its instrument had ended.
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends a JOIN orders.outbox_orders x ON x.id = a.outbox_id"
                  " JOIN orders.outbox_orders y ON y.instrument = x.instrument AND y.id > x.id"
                  " JOIN orders.sends b ON b.outbox_id = y.id WHERE b.began_at < a.ended_at"),
            "0");
}

TEST_F(OrdersTest, HealthSaysThatWorkersOfDifferentAdaptersShareTheOrders) {
  const auto one = node();
  const auto other = node({"TODOKE_BROKER_ADAPTER=noop"});
  wait_until("health", [&] { return one->health().find("different adapters") != std::string::npos; });
  EXPECT_THAT(one->health(), HasSubstr("share the orders of this database: noop, paper"));
}

TEST_F(OrdersTest, WithoutAWorkerOrdersWaitAndHealthSaysSo) {
  const auto idle = node({"OUTBOX_ENABLED=false"});
  accept("waiting-key");
  EXPECT_THAT(idle->health(), HasSubstr("no worker runs"));
  const auto worker = node();
  await_status("waiting-key", "succeeded");
  wait_until("health to see the worker",
             [&] { return idle->health().find("no worker runs") == std::string::npos; });
}

TEST_F(OrdersTest, ALeaseTooShortForTheBrokerIsRefused) {
  OrderNode refused(test_database, {"OUTBOX_LOCK_LEASE_SEC=3", "BROKER_TIMEOUT_MS=2500"});
  const auto exit = refused.process().wait();
  EXPECT_NE(exit.code, 0);
  EXPECT_THAT(exit.err, HasSubstr("outbox.lock_lease_sec"));
}

TEST_F(OrdersTest, SighupChangesTheConcurrency) {
  const TempFolder folder;
  const auto file = (folder.path() / "todoke.toml").string();
  const auto write = [&](int concurrency) {
    std::ofstream(file) << fmt::format("[outbox]\nconcurrency = {}\n", concurrency);
  };
  write(1);
  const auto worker = node({"TODOKE_CONFIG=" + file, "TODOKE_BROKER_PAPER_LATENCY_MS=200"});
  write(16);
  worker->process().kill(SIGHUP);
  worker->process().wait_for_output("settings read again");
  for (int i = 0; i < 16; ++i) accept(fmt::format("hup-key-{:02}", i));
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "16");
  // At least two tries were under way at the same time.
  EXPECT_EQ(value("SELECT count(*) > 0 FROM orders.sends a JOIN orders.sends b ON a.outbox_id < b.outbox_id"
                  " AND a.began_at < b.ended_at AND b.began_at < a.ended_at"),
            "t");
}

TEST_F(OrdersTest, SighupLowersTheConcurrencyWhileOrdersAreUnderWay) {
  const TempFolder folder;
  const auto file = (folder.path() / "todoke.toml").string();
  const auto write = [&](int concurrency) {
    std::ofstream(file) << fmt::format("[outbox]\nconcurrency = {}\n", concurrency);
  };
  write(6);
  PaperHold broker(test_database);
  for (int i = 0; i < 20; ++i) accept(fmt::format("lower-key-{:02}", i));
  const auto worker = node({"TODOKE_CONFIG=" + file, "TODOKE_BROKER_PAPER_LATENCY_MS=20",
                            "BROKER_TIMEOUT_MS=60000", "OUTBOX_LOCK_LEASE_SEC=90",
                            // The paper broker holds a connection of the share of orders for each.
                            "TODOKE_DATABASE_POOL_MAX=24"});
  broker.await_orders(6);
  write(2);
  worker->process().kill(SIGHUP);
  worker->process().wait_for_output("settings read again");
  const auto lowered = value("SELECT now()");
  broker.release();
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "20");
  // What was under way as each of the others began, itself included.
  EXPECT_EQ(
      value(fmt::format(
          "SELECT concat_ws(',', count(*), max(under_way) <= 2) FROM (SELECT count(*) AS under_way"
          " FROM orders.sends a JOIN orders.sends b ON b.began_at <= a.began_at AND b.ended_at > a.began_at"
          " WHERE a.began_at > '{}' GROUP BY a.outbox_id) s",
          lowered)),
      "14,t");
}

TEST_F(OrdersTest, SighupChangesTheLease) {
  const TempFolder folder;
  const auto file = (folder.path() / "todoke.toml").string();
  const auto write = [&](int seconds) {
    std::ofstream(file) << fmt::format("[outbox]\nlock_lease_sec = {}\n", seconds);
  };
  write(600);
  const auto worker = node({"TODOKE_CONFIG=" + file, "OUTBOX_LOCK_LEASE_SEC"});
  accept("lost-key");
  run("SET orders.actor = 'test';"
      "UPDATE orders.outbox_orders SET status = 'sending', locked_by = 'elsewhere:1:aa', claim_no = 7,"
      " locked_at = now() - interval '1 minute' WHERE idempotency_key = 'lost-key'; RESET orders.actor");
  EXPECT_EQ(of("lost-key", "status"), "sending");
  write(2);
  worker->process().kill(SIGHUP);
  await_status("lost-key", "succeeded");
  EXPECT_EQ(worker->metric("outbox_lock_lease_expired_total"), 1);
}

TEST_F(OrdersTest, FinishedOrdersGoToTheArchiveAndTheirKeysCanComeAgain) {
  const auto first = node();
  accept("archive-key");
  await_status("archive-key", "succeeded");
  first->stop();
  run("SET orders.actor = 'test';"
      "UPDATE orders.outbox_orders SET created_at = now() - interval '3 days', updated_at = now() - interval "
      "'50 hours';"
      "UPDATE orders.idempo_ledger SET first_seen_at = now() - interval '3 days', expires_at = now() - "
      "interval '2 hours';"
      "RESET orders.actor");
  const auto second = node();
  await("SELECT count(*) FROM orders.outbox_orders", "0");
  await("SELECT status FROM orders.outbox_orders_archive", "succeeded");
  second->stop();
  const auto third = node();
  await("SELECT count(*) FROM orders.idempo_ledger", "0");
  third->stop();
  EXPECT_EQ(value("SELECT concat_ws(',', http_status, response_payload_json ->> 'executed_qty',"
                  " response_payload_json #>> '{fills,0,qty}', result_digest LIKE 'sha256:%')"
                  " FROM orders.outbox_orders_archive"),
            "200,2,2,t");
  EXPECT_THAT(todoke_on(test_database, {"orders", "show", "archive-key", "--reveal"}).out,
              testing::HasSubstr("\"executed_qty\":2"));
  // Another order for everybody, the broker included, which still has the first one in its book.
  accept("archive-key", "ETH-USD");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET order_request_json = order_request_json ||"
      " '{\"qty\": 7}'; RESET orders.actor");
  const auto fourth = node({"TODOKE_BROKER_PAPER_FIRST=lost"});
  await_status("archive-key", "succeeded");
  EXPECT_EQ(ledger("archive-key", "response_payload_json ->> 'executed_qty'"), "7");
  EXPECT_EQ(value("SELECT string_agg(qty || ' ' || copies, ',' ORDER BY outbox_id) FROM orders.paper_book"),
            "2 1,7 1");
  EXPECT_EQ(value("SELECT count(DISTINCT order_ref) FROM orders.paper_book"), "2");
}

TEST_F(OrdersTest, TheKeyOfAWorkingOrderIsNeverFree) {
  const auto first = node();
  accept("working-key", "BTC-USD", "GTC");
  accept("ended-key");
  await("SELECT count(*) FROM orders.idempo_ledger WHERE status = 'succeeded'", "2");
  first->stop();
  run("SET orders.actor = 'test';"
      "UPDATE orders.outbox_orders SET created_at = now() - interval '3 days', updated_at = now() - interval "
      "'50 hours';"
      "UPDATE orders.idempo_ledger SET first_seen_at = now() - interval '3 days', expires_at = now() - "
      "interval '2 hours';"
      "UPDATE orders.idempo_ledger SET response_payload_json ="
      " jsonb_set(response_payload_json::jsonb, '{warnings}', '[\"WORKING\"]')::json"
      " WHERE idempotency_key = 'working-key';"
      "RESET orders.actor");
  const auto second = node();
  await("SELECT count(*) FROM orders.outbox_orders", "0");
  second->stop();
  const auto third = node();
  await("SELECT string_agg(idempotency_key, ',') FROM orders.idempo_ledger", "working-key");
  // The pass has been over both of them; nothing is left to wait for.
  third->stop();
  EXPECT_EQ(ledger("working-key", "status"), "succeeded");
}

TEST_F(OrdersTest, HistoryIsKeptForItsMonthsAndWhatIsBeingReadWaits) {
  run("CREATE TABLE orders.sends_2020_01 PARTITION OF orders.sends FOR VALUES FROM ('2020-01-01') TO "
      "('2020-02-01');"
      "CREATE TABLE orders.outbox_orders_archive_2020_02 PARTITION OF orders.outbox_orders_archive"
      " FOR VALUES FROM ('2020-02-01') TO ('2020-03-01');"
      "CREATE TABLE orders.fix_reports_archive_2020_03 PARTITION OF orders.fix_reports_archive"
      " FOR VALUES FROM ('2020-03-01') TO ('2020-04-01')");
  const auto months = [this] {
    return value(
        "SELECT count(*) FROM pg_inherits JOIN pg_class ON oid = inhrelid"
        " WHERE relkind = 'r' AND relname LIKE '%\\_2020\\_%'");
  };
  const auto everything = node();
  accept("kept-key");
  await_status("kept-key", "succeeded");
  everything->stop();
  EXPECT_EQ(months(), "3");

  SqlSession reader(test_database.url());
  reader.run("BEGIN; SELECT count(*) FROM orders.outbox_orders_archive");
  const auto a_year = node({"TODOKE_ORDERS_HISTORY_MONTHS=12"});
  a_year->process().wait_for_output("old history was not dropped");
  a_year->wait_for_metric("outbox_history_dropped_total", 2);
  accept("next-key");
  await_status("next-key", "succeeded");
  a_year->stop();
  EXPECT_EQ(months(), "1");
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "2");

  reader.run("COMMIT");
  const auto again = node({"TODOKE_ORDERS_HISTORY_MONTHS=12"});
  again->wait_for_metric("outbox_history_dropped_total", 1);
  EXPECT_EQ(months(), "0");
}

}  // namespace
}  // namespace todoke::test
