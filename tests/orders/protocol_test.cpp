// W-101 to W-105 of the worker protocol, and the rows of its table of faults.
#include <fmt/format.h>

#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The statements of the protocol's section on recovery, word for word.
std::string requeue_by_hand(const std::string& id) {
  return "SET search_path = orders;"
         "UPDATE outbox_orders\n"
         "   SET status='pending', attempts=0, last_error_code=NULL, last_error_msg=NULL,\n"
         "       next_run_at=NULL, updated_at=now()\n"
         " WHERE id = " +
         id + "; RESET search_path";
}
constexpr const char* kReleaseLapsed =
    "SET search_path = orders;"
    "UPDATE outbox_orders\n"
    "   SET status='pending', locked_by=NULL, locked_at=NULL\n"
    " WHERE status='sending' AND locked_at < now() - interval '120 seconds'; RESET search_path";

TEST_F(OrdersTest, W101_PendingBecomesSendingAndSucceeded) {
  PaperHold broker(test_database);
  const auto worker = node(kPatient);
  accept("w101-key");
  broker.await_orders(1);
  EXPECT_EQ(of("w101-key", "status"), "sending");
  EXPECT_THAT(of("w101-key", "locked_by"), StartsWith(worker->worker()));
  EXPECT_EQ(ledger("w101-key", "status"), "accepted");
  broker.release();
  await_status("w101-key", "succeeded");
  EXPECT_EQ(
      of("w101-key", "concat_ws(',', attempts, claim_no, in_doubt, locked_by, locked_at, last_error_code)"),
      "0,1,f");
  EXPECT_EQ(ledger("w101-key", "concat_ws(',', status, http_status)"), "succeeded,200");
  EXPECT_EQ(ledger("w101-key", "response_payload_json ->> 'executed_qty'"), "2");
  EXPECT_EQ(ledger("w101-key", "response_payload_json ->> 'cost'"), "21");
  EXPECT_THAT(ledger("w101-key", "result_digest"), StartsWith("sha256:"));
  EXPECT_EQ(value("SELECT outcome FROM orders.sends"), "ok");
  worker->wait_for_metric("outbox_processed_total{outcome=\"succeeded\"}", 1);
}

TEST_F(OrdersTest, W102_ATimeoutIsRetriedAndTheSecondTrySucceeds) {
  const auto worker = node({"TODOKE_BROKER_PAPER_FIRST=timeout", "OUTBOX_BACKOFF_SEC=1"});
  accept("w102-key");
  await_status("w102-key", "failed");
  EXPECT_EQ(of("w102-key", "concat_ws(',', attempts, last_error_code, in_doubt)"), "1,BROKER_TIMEOUT,t");
  EXPECT_EQ(of("w102-key", "next_run_at - updated_at BETWEEN '1 s' AND '1.2 s'"), "t");
  EXPECT_EQ(ledger("w102-key", "status"), "accepted");
  await_status("w102-key", "succeeded");
  EXPECT_EQ(of("w102-key", "concat_ws(',', attempts, claim_no, in_doubt)"), "1,2,f");
  EXPECT_EQ(value("SELECT string_agg(outcome, ',' ORDER BY claim_no) FROM orders.sends"),
            "BROKER_TIMEOUT,ok");
  EXPECT_EQ(worker->metric("outbox_retry_total{attempt=\"1\"}"), 1);
}

TEST_F(OrdersTest, W103_AnOrderOfAKilledWorkerIsTakenOverWhenItsLeaseHasLapsed) {
  const auto first =
      node({"TODOKE_BROKER_PAPER_LATENCY_MS=60000", "BROKER_TIMEOUT_MS=60000", "OUTBOX_LOCK_LEASE_SEC=90"});
  accept("w103-key");
  await_status("w103-key", "sending");
  first->process().kill(SIGKILL);
  first->process().wait();
  EXPECT_EQ(of("w103-key", "status"), "sending");
  const auto second = node();
  await_status("w103-key", "succeeded");
  EXPECT_EQ(of("w103-key", "concat_ws(',', attempts, claim_no)"), "1,2");
  EXPECT_EQ(value("SELECT copies FROM orders.paper_book"), "1");
  EXPECT_EQ(value("SELECT string_agg(outcome, ',' ORDER BY claim_no) FROM orders.sends"), "LEASE_EXPIRED,ok");
  EXPECT_EQ(second->metric("outbox_lock_lease_expired_total"), 1);
}

TEST_F(OrdersTest, W104_AfterTheLastAttemptAnOrderIsAbortedAndSucceedsWhenItIsRequeued) {
  const auto worker = node({"TODOKE_BROKER_PAPER_FIRST=down,down,down", "OUTBOX_MAX_ATTEMPTS=3"});
  accept("w104-key");
  await_status("w104-key", "aborted");
  EXPECT_EQ(of("w104-key", "concat_ws(',', attempts, last_error_code, claim_no)"), "3,BROKER_DOWN,3");
  EXPECT_EQ(
      ledger("w104-key", "concat_ws(',', status, http_status, response_payload_json ->> 'reason_code')"),
      "failed,503,BROKER_DOWN");
  run(requeue_by_hand(of("w104-key", "id")));
  await_status("w104-key", "succeeded");
  EXPECT_EQ(of("w104-key", "concat_ws(',', attempts, claim_no)"), "0,4");
  EXPECT_EQ(ledger("w104-key", "concat_ws(',', status, http_status)"), "succeeded,200");
  EXPECT_EQ(value("SELECT string_agg(action, ', ' ORDER BY id) FROM orders.audit"),
            "update outbox_orders, reopen ledger");
}

TEST_F(OrdersTest, W105_AnOrderWhoseLedgerHasSucceededFollowsItWithoutASend) {
  accept("w105-key");
  run("SET orders.actor = 'test'; UPDATE orders.idempo_ledger SET status = 'succeeded', http_status = 200,"
      " response_payload_json = '{\"status\": \"ok\"}'; RESET orders.actor");
  const auto worker = node();
  await_status("w105-key", "succeeded");
  EXPECT_EQ(ledger("w105-key", "response_payload_json::text"), "{\"status\": \"ok\"}");
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "0");
  EXPECT_EQ(value("SELECT count(*) FROM orders.paper_book"), "0");
  worker->wait_for_metric("outbox_processed_total{outcome=\"synced\"}", 1);
}

TEST_F(OrdersTest, AStoredDocumentThatIsNoOrderIsAbortedBeforeAnySend) {
  const auto worker = node();
  run("INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest)"
      " VALUES ('broken-key', '{\"instrument\": 1}', 'x')");
  await_status("broken-key", "aborted");
  EXPECT_EQ(of("broken-key", "concat_ws(',', attempts, last_error_code)"), "0,VALIDATION_ERROR");
  EXPECT_EQ(ledger("broken-key", "concat_ws(',', status, http_status)"), "failed,422");
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "0");
}

TEST_F(OrdersTest, AKeyOfAnotherContentIsAbortedAndItsLedgerLeftAlone) {
  accept("conflict-key");
  run("SET orders.actor = 'test'; UPDATE orders.idempo_ledger SET request_digest = 'another'; RESET "
      "orders.actor");
  const auto worker = node();
  await_status("conflict-key", "aborted");
  EXPECT_EQ(of("conflict-key", "last_error_code"), "IDEMPOTENCY_CONFLICT");
  EXPECT_EQ(ledger("conflict-key", "concat_ws(',', status, request_digest)"), "accepted,another");
  EXPECT_EQ(value("SELECT count(*) FROM orders.paper_book"), "0");
  worker->wait_for_metric("outbox_processed_total{outcome=\"conflict\"}", 1);
}

TEST_F(OrdersTest, ARejectionIsFinal) {
  const auto worker = node({"TODOKE_BROKER_PAPER_FIRST=reject"});
  accept("reject-key");
  await_status("reject-key", "aborted");
  EXPECT_EQ(of("reject-key", "concat_ws(',', attempts, last_error_code, claim_no)"), "1,BROKER_REJECTED,1");
  EXPECT_EQ(ledger("reject-key", "concat_ws(',', status, http_status)"), "failed,409");
}

TEST_F(OrdersTest, AnOrderThatWasExecutedAndWhoseAnswerWasLostIsExecutedOnce) {
  const auto worker = node({"TODOKE_BROKER_PAPER_FIRST=lost"});
  accept("lost-key");
  await_status("lost-key", "succeeded");
  EXPECT_EQ(value("SELECT copies FROM orders.paper_book"), "1");
  EXPECT_EQ(ledger("lost-key", "concat_ws(',', status, response_payload_json ->> 'executed_qty')"),
            "succeeded,2");
  EXPECT_EQ(value("SELECT string_agg(outcome, ',' ORDER BY claim_no) FROM orders.sends"),
            "BROKER_TIMEOUT,FOUND");
  EXPECT_EQ(of("lost-key", "in_doubt"), "f");
}

TEST_F(OrdersTest, AnOrderAbortedInDoubtSaysSo) {
  const auto worker = node({"TODOKE_BROKER_PAPER_FIRST=timeout,timeout", "OUTBOX_MAX_ATTEMPTS=2"});
  accept("doubt-key");
  await_status("doubt-key", "aborted");
  EXPECT_EQ(of("doubt-key", "concat_ws(',', attempts, in_doubt)"), "2,t");
  EXPECT_EQ(ledger("doubt-key", "concat_ws(',', http_status, response_payload_json ->> 'warnings')"),
            "504,[\"IN_DOUBT\"]");
  worker->wait_for_metric("outbox_aborted_in_doubt_total", 1);
  worker->wait_for_metric("outbox_in_doubt", 1);
}

TEST_F(OrdersTest, ALapsedRowReleasedByHandIsInDoubtAndLookedUpFirst) {
  accept("released-key");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET status = 'sending', locked_by = 'gone', "
      "claim_no = 1,"
      " locked_at = now() - interval '1 hour'; RESET orders.actor;"
      "INSERT INTO orders.paper_book (broker_id, outbox_id, order_ref, outcome, px, qty)"
      " SELECT idempotency_key, id, 'P-before', 'filled', '10.5', '2' FROM orders.outbox_orders");
  run(kReleaseLapsed);
  EXPECT_EQ(of("released-key", "concat_ws(',', status, in_doubt)"), "pending,t");
  const auto worker = node();
  await_status("released-key", "succeeded");
  EXPECT_EQ(value("SELECT copies FROM orders.paper_book"), "1");
  EXPECT_EQ(ledger("released-key", "response_payload_json -> 'broker' ->> 'order_ref'"), "P-before");
}

TEST_F(OrdersTest, AnOrderThatKillsItsWorkersRunsOutOfAttempts) {
  accept("poison-key");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET status = 'sending', locked_by = 'gone', "
      "claim_no = 5,"
      " attempts = 5, locked_at = now() - interval '1 hour'; RESET orders.actor");
  const auto worker = node({"OUTBOX_MAX_ATTEMPTS=6"});
  await_status("poison-key", "aborted");
  EXPECT_EQ(of("poison-key", "concat_ws(',', attempts, last_error_code)"), "6,LEASE_EXPIRED");
  EXPECT_EQ(ledger("poison-key", "status"), "failed");
  EXPECT_EQ(value("SELECT count(*) FROM orders.paper_book"), "0");
}

TEST_F(OrdersTest, ALapsedRowWhoseLedgerIsSettledFollowsTheLedger) {
  accept("settled-key");
  run("SET orders.actor = 'test';"
      "UPDATE orders.outbox_orders SET status = 'sending', locked_by = 'gone', claim_no = 1,"
      " locked_at = now() - interval '1 hour';"
      "UPDATE orders.idempo_ledger SET status = 'failed', http_status = 409,"
      " response_payload_json = '{\"reason_code\": \"BROKER_REJECTED\"}'; RESET orders.actor");
  const auto worker = node();
  await_status("settled-key", "aborted");
  EXPECT_EQ(of("settled-key", "last_error_code"), "BROKER_REJECTED");
  EXPECT_EQ(value("SELECT count(*) FROM orders.paper_book"), "0");
}

TEST_F(OrdersTest, ALedgerRowThatGoesOrComesWhileAnOrderIsSentIsWrittenAllTheSame) {
  PaperHold broker(test_database);
  const auto worker = node(kPatient);
  accept("gone-key");
  run("SET orders.actor = 'test'; INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, "
      "request_digest)"
      " SELECT 'come-key', jsonb_set(order_request_json, '{idempotency_key}', '\"come-key\"'), request_digest"
      " FROM orders.outbox_orders; RESET orders.actor");
  broker.await_orders(2);
  run("SET orders.actor = 'test'; DELETE FROM orders.idempo_ledger WHERE idempotency_key = 'gone-key';"
      "INSERT INTO orders.idempo_ledger (idempotency_key, request_digest)"
      " SELECT idempotency_key, request_digest FROM orders.outbox_orders WHERE idempotency_key = 'come-key';"
      "RESET orders.actor");
  broker.release();
  for (const auto* key : {"gone-key", "come-key"}) {
    await_status(key, "succeeded");
    EXPECT_EQ(ledger(key, "status"), "succeeded") << key;
  }
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "2");
  EXPECT_EQ(value("SELECT max(claim_no) FROM orders.outbox_orders"), "1");
}

TEST_F(OrdersTest, ADatabaseThatLosesTheSettlingIsRetriedWithoutASecondSend) {
  // The ledger can't be written until the constraint is gone.
  const auto worker = node();
  run("CREATE FUNCTION pg_temp_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
      " RAISE EXCEPTION 'away' USING ERRCODE = '57P03'; END $$;"
      "CREATE TRIGGER refuse BEFORE UPDATE ON orders.idempo_ledger FOR EACH ROW EXECUTE FUNCTION "
      "pg_temp_refuse()");
  accept("settle-key");
  await("SELECT count(*) FROM orders.paper_book", "1");
  worker->process().wait_for_output("jobs could not be settled");
  EXPECT_EQ(of("settle-key", "status"), "sending");
  run("DROP TRIGGER refuse ON orders.idempo_ledger");
  await_status("settle-key", "succeeded");
  EXPECT_EQ(value("SELECT copies FROM orders.paper_book"), "1");
  EXPECT_EQ(of("settle-key", "claim_no"), "1");
}

}  // namespace
}  // namespace todoke::test
