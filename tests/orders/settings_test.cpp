// Workers as processes: what their settings and their times mean.
#include <fstream>

#include <fmt/format.h>

#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

TEST_F(OrdersTest, ALeaseTooShortForTheTimeoutInUseIsRefusedOnSighup) {
  const TempFolder folder;
  const auto file = (folder.path() / "todoke.toml").string();
  const auto write = [&](int lease_sec, int timeout_ms) {
    std::ofstream(file) << fmt::format("[outbox]\nlock_lease_sec = {}\n[broker]\ntimeout_ms = {}\n",
                                       lease_sec, timeout_ms);
  };
  write(120, 10'000);
  const auto worker = node({"TODOKE_CONFIG=" + file, "OUTBOX_LOCK_LEASE_SEC", "BROKER_TIMEOUT_MS"});
  // The timeout changes at a start only, so this lease would never leave time enough for a send.
  write(5, 1'000);
  worker->process().kill(SIGHUP);
  worker->process().wait_for_output("settings not changed");
  EXPECT_THAT(worker->process().err(), HasSubstr("outbox.lock_lease_sec is 5000 ms"));
  EXPECT_THAT(worker->process().err(), HasSubstr("broker.timeout_ms (10000 ms"));
  EXPECT_THAT(worker->process().err(),
              HasSubstr(R"("changed settings that need a restart","keys":"broker.timeout_ms"})"));
  accept("refused-lease-key");
  await_status("refused-lease-key", "succeeded");
  write(12, 1'000);
  worker->process().kill(SIGHUP);
  worker->process().wait_for_output("settings read again");
  accept("changed-lease-key");
  await_status("changed-lease-key", "succeeded");
}

TEST_F(OrdersTest, TheLongerLeaseOfAWorkerThatLivesHoldsAgainstTheShorterOfAnother) {
  PaperHold hold(test_database);
  const auto patient = node({"OUTBOX_LOCK_LEASE_SEC=60", "BROKER_TIMEOUT_MS=30000"});
  accept("patient-key");
  hold.await_orders(1);
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET locked_at = now() - interval '40 s';"
      "RESET orders.actor");
  accept("lapsed-key");
  await_status("lapsed-key", "sending");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET locked_at = now() - interval '2 min', "
      "locked_by = 'gone' WHERE idempotency_key = 'lapsed-key'; RESET orders.actor");
  // Lapsed rows are taken over in the order of their ids.
  const auto hasty = node({"OUTBOX_LOCK_LEASE_SEC=31", "BROKER_TIMEOUT_MS=30000"});
  await("SELECT claim_no FROM orders.outbox_orders WHERE idempotency_key = 'lapsed-key'", "2");
  EXPECT_EQ(of("patient-key", "concat_ws(',', claim_no, in_doubt)"), "1,f");
  hold.release();
  await_status("patient-key", "succeeded");
  await_status("lapsed-key", "succeeded");
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends WHERE outcome = 'LEASE_EXPIRED'"), "1");
}

TEST_F(OrdersTest, AClaimTakesAtMostABatch) {
  for (int i = 0; i < 5; ++i) accept(fmt::format("batch-key-{}", i));
  const auto worker = node({"OUTBOX_BATCH=2", "OUTBOX_CONCURRENCY=3", "TODOKE_BROKER_PAPER_LATENCY_MS=60000",
                            "BROKER_TIMEOUT_MS=60000", "OUTBOX_LOCK_LEASE_SEC=600"});
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'sending'", "5");
  // All rows of one claim have one locked_at.
  EXPECT_EQ(
      value("SELECT max(rows) FROM (SELECT count(*) AS rows FROM orders.outbox_orders GROUP BY locked_at) c"),
      "2");
  worker->process().kill(SIGKILL);
}

TEST_F(OrdersTest, OrdersThatAreHeldForLongerThanTheLeaseAreNotTakenOver) {
  // Twelve orders one after the other take longer than a lease and a half.
  const auto holder = node({"TODOKE_BROKER_PAPER_LATENCY_MS=800", "BROKER_TIMEOUT_MS=2000",
                            "OUTBOX_LOCK_LEASE_SEC=6", "OUTBOX_CONCURRENCY=1"});
  for (int i = 0; i < 12; ++i) accept(fmt::format("beat-key-{}", i));
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'pending'", "0");
  const auto other = node({"OUTBOX_LOCK_LEASE_SEC=6"});
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "12");
  EXPECT_EQ(value("SELECT concat_ws(',', max(claim_no), max(attempts)) FROM orders.outbox_orders"), "1,0");
  EXPECT_EQ(other->metric("outbox_lock_lease_expired_total"), 0);
}

TEST_F(OrdersTest, AWorkerIsWokenForANewOrder) {
  // By itself it would look once a second at most: so many, one after the other, would take longer than
  // wait_until waits.
  constexpr int kOrders = 80;
  const auto worker = node({"OUTBOX_POLL_INTERVAL_SEC=60"});
  int done = 0;
  accept("woken-key-0");
  wait_until("orders one after the other", [&] {
    if (of(fmt::format("woken-key-{}", done), "status") != "succeeded") return false;
    if (++done < kOrders) accept(fmt::format("woken-key-{}", done));
    return done == kOrders;
  });
}

TEST_F(OrdersTest, AHaltOfAnAdapterStopsItsWorkersOnly) {
  EXPECT_EQ(todoke_on(test_database, {"orders", "halt", "--adapter", "http"}).code, 0);
  accept("adapter-key-1");
  auto worker = node();
  await_status("adapter-key-1", "succeeded");
  worker->stop();

  EXPECT_EQ(todoke_on(test_database, {"orders", "halt", "--adapter", "paper"}).code, 0);
  accept("adapter-key-2");
  worker = node();
  // It looks and takes nothing.
  const std::string looks = "outbox_latency_ms_count{phase=\"claim\"}";
  wait_until("some claims", [&] { return worker->metric(looks) >= 3; });
  EXPECT_EQ(of("adapter-key-2", "concat_ws(',', status, claim_no)"), "pending,0");
  EXPECT_EQ(todoke_on(test_database, {"orders", "resume", "--adapter", "paper"}).code, 0);
  await_status("adapter-key-2", "succeeded");
}

TEST_F(OrdersTest, EachTimeInForceHasAnAgeOfItsOwn) {
  const auto make_old = [this] {
    run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET created_at = now() - interval '1 hour'"
        " WHERE status = 'pending'; RESET orders.actor");
  };
  for (const auto* limited : {"IOC", "FOK", "GTC"}) {
    for (const auto* kind : {"IOC", "FOK", "GTC"})
      accept(fmt::format("age-{}-{}", limited, kind), "BTC-USD", kind);
    make_old();
    const auto worker = node({fmt::format("TODOKE_ORDERS_MAX_AGE_SEC_{}=60", limited)});
    for (const auto* kind : {"IOC", "FOK", "GTC"}) {
      const bool expires = std::string(kind) == limited;
      const auto key = fmt::format("age-{}-{}", limited, kind);
      await_status(key, expires ? "aborted" : "succeeded");
      EXPECT_EQ(of(key, "coalesce(last_error_code, '')"), expires ? "ORDER_EXPIRED" : "");
    }
    worker->stop();
  }
}

TEST_F(OrdersTest, AbortedOrdersStayAWeekAndNoLedgerRowGoesBeforeItsOrder) {
  for (const auto* key : {"week-key", "late-key", "gone-key", "orphan-key"}) accept(key);
  // Aborted six and eight days ago, succeeded a day ago but for an hour, and one whose order is gone already.
  // All of the ledger has expired.
  run("SET orders.actor = 'test';"
      "UPDATE orders.outbox_orders SET created_at = now() - interval '9 days', status = CASE idempotency_key "
      "WHEN"
      " 'late-key' THEN 'succeeded' ELSE 'aborted' END, updated_at = now() - CASE idempotency_key WHEN "
      "'gone-key' THEN"
      " interval '8 days' WHEN 'week-key' THEN interval '6 days' ELSE interval '23 hours' END;"
      "UPDATE orders.idempo_ledger SET first_seen_at = now() - interval '9 days', expires_at = now() - "
      "interval"
      " '4 days', status = CASE idempotency_key WHEN 'late-key' THEN 'succeeded' ELSE 'failed' END;"
      "DELETE FROM orders.outbox_orders WHERE idempotency_key = 'orphan-key'; RESET orders.actor");
  const auto worker = node();
  // The ledger comes last in a pass.
  await("SELECT count(*) FROM orders.idempo_ledger WHERE idempotency_key = 'orphan-key'", "0");
  EXPECT_EQ(value("SELECT string_agg(idempotency_key, ',') FROM orders.outbox_orders_archive"), "gone-key");
  for (const auto* table : {"outbox_orders", "idempo_ledger"}) {
    EXPECT_EQ(
        value(fmt::format("SELECT string_agg(idempotency_key, ',' ORDER BY idempotency_key) FROM orders.{}"
                          " WHERE idempotency_key <> 'gone-key'",
                          table)),
        "late-key,week-key");
  }
}

TEST_F(OrdersTest, ThePaperBrokersAnswerDependsOnTheTimeInForce) {
  const auto worker = node({"TODOKE_BROKER_PAPER_FIRST=partial"});
  for (const auto* kind : {"IOC", "FOK", "GTC"}) accept(fmt::format("paper-{}", kind), "BTC-USD", kind);
  const auto result = [this](const std::string& key) {
    await_status(key, "succeeded");
    return ledger(
        key,
        "concat_ws(' ', response_payload_json ->> 'executed_qty', response_payload_json ->> 'warnings')");
  };
  EXPECT_EQ(result("paper-IOC"), "1 []");
  EXPECT_EQ(result("paper-FOK"), "0 [\"UNFILLED\"]");
  EXPECT_EQ(result("paper-GTC"), "1 [\"WORKING\"]");
}

TEST_F(OrdersTest, WorkersThatDiedAreForgottenAfterADay) {
  run("INSERT INTO orders.workers (worker, adapter, seen_at) VALUES ('yesterday', 'paper', now() - interval "
      "'25 h'),"
      " ('lately', 'paper', now() - interval '23 h')");
  const auto worker = node();
  await("SELECT count(*) FROM orders.workers WHERE worker = 'yesterday'", "0");
  EXPECT_EQ(value("SELECT count(*) FROM orders.workers"), "2");
}

}  // namespace
}  // namespace todoke::test
