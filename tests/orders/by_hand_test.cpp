// Plain SQL on the tables of the orders: all of it is audited, what was written down stays, and no order is
// lost by it.
#include <fmt/format.h>

#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ByHand : public OrdersTest {
 protected:
  // Every entry of the audit: who, what, and the status before and after.
  std::string audit() {
    return value(
        "SELECT coalesce(string_agg(concat_ws(' ', action, before ->> 'status', '>', after ->> 'status'), ', "
        "'"
        " ORDER BY id), '') FROM orders.audit WHERE actor = 'sql:' || session_user");
  }
  // What the server says to it; empty when it does it.
  std::string refusal(const std::string& sql) {
    try {
      run(sql);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }
  std::vector<std::string> journal_months() {
    return database.run(
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'orders.sends'::regclass");
  }
  // A try of every month that the journal has a partition for.
  void write_tries() {
    run("INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, began_at, ended_at, outcome, "
        "worker, "
        "written_at)"
        " SELECT 1, 'hash', 1, 'paper', now(), now(), 'ok', 'w', now() + n * interval '1 month'"
        " FROM generate_series(0, 1) n");
  }
};

TEST_F(ByHand, RowsThatArePutInAreAudited) {
  run("INSERT INTO orders.idempo_ledger (idempotency_key, request_digest) VALUES ('put-key', 'd');"
      "INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest)"
      " VALUES ('put-key', '{\"instrument\": \"HIDDEN\"}', 'd')");
  EXPECT_EQ(audit(), "insert idempo_ledger > accepted, insert outbox_orders > pending");
  EXPECT_EQ(
      value("SELECT bool_and(key_hash = orders.key_hash('put-key') AND before IS NULL) FROM orders.audit"),
      "t");
  EXPECT_EQ(value("SELECT max(outbox_id) FROM orders.audit"), of("put-key", "id"));
  EXPECT_EQ(value("SELECT count(*) FROM orders.audit a WHERE a::text LIKE '%HIDDEN%'"), "0");
}

TEST_F(ByHand, AChangeOfContentAloneIsAuditedByItsHash) {
  accept("content-key");
  run("UPDATE orders.idempo_ledger SET response_payload_json = '{\"status\": \"HIDDEN\"}'");
  run("UPDATE orders.outbox_orders SET order_request_json = order_request_json || '{\"qty\": 3}'");
  EXPECT_EQ(audit(), "update idempo_ledger accepted > accepted, update outbox_orders pending > pending");
  EXPECT_EQ(
      value("SELECT string_agg(concat(before ->> 'result_hash' IS DISTINCT FROM after ->> 'result_hash',"
            " before ->> 'order_hash' IS DISTINCT FROM after ->> 'order_hash'), ',' ORDER BY id)"
            " FROM orders.audit"),
      "tf,ft");
  EXPECT_EQ(value("SELECT count(*) FROM orders.audit a WHERE a::text LIKE '%HIDDEN%'"), "0");
}

TEST_F(ByHand, TheKillSwitchIsNotThrownOrLiftedUnseen) {
  run("INSERT INTO orders.halts (instrument, halted_by) VALUES ('BTC-USD', 'me')");
  run("UPDATE orders.halts SET intake_refused = true");
  run("DELETE FROM orders.halts");
  run("INSERT INTO orders.halts (halted_by) VALUES ('me'); TRUNCATE orders.halts");
  EXPECT_EQ(value("SELECT string_agg(action, ',' ORDER BY id) FROM orders.audit"),
            "insert halts,update halts,delete halts,insert halts,truncate halts");
  EXPECT_EQ(value("SELECT before ->> 'instrument' FROM orders.audit WHERE action = 'delete halts'"),
            "BTC-USD");
}

TEST_F(ByHand, EmptyingTheTablesIsAudited) {
  accept("truncated-key");
  run("TRUNCATE orders.outbox_orders, orders.idempo_ledger");
  EXPECT_EQ(value("SELECT string_agg(action, ',' ORDER BY action) FROM orders.audit"),
            "truncate idempo_ledger,truncate outbox_orders");
}

TEST_F(ByHand, NothingOfAuditAndJournalIsTakenBack) {
  run("SELECT orders.ensure_partitions(now() + interval '3 months')");
  run("INSERT INTO orders.halts (halted_by) VALUES ('me')");
  write_tries();
  auto tables = journal_months();
  ASSERT_GE(tables.size(), 4U);
  tables.emplace_back("orders.sends");
  tables.emplace_back("orders.audit");
  for (const auto& table : tables) {
    EXPECT_THAT(refusal("TRUNCATE " + table), HasSubstr("append-only")) << table;
    if (value("SELECT count(*) FROM " + table) == "0") continue;
    EXPECT_THAT(refusal("DELETE FROM " + table), HasSubstr("append-only")) << table;
    EXPECT_THAT(refusal(fmt::format("UPDATE {0} SET {1} = {1}", table,
                                    table == "orders.audit" ? "reason" : "outcome")),
                HasSubstr("append-only"))
        << table;
  }
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "2");
  EXPECT_THAT(refusal("DROP TABLE " + tables.front()), IsEmpty()) << "old months go whole";
}

TEST_F(ByHand, AFailedOrderWithoutATimeIsDueAtOnce) {
  for (const auto* key : {"inserted-key", "changed-key", "cleared-key"}) accept(key);
  run("DELETE FROM orders.outbox_orders WHERE idempotency_key = 'inserted-key';"
      "INSERT INTO orders.outbox_orders (idempotency_key, order_request_json, request_digest, status)"
      " SELECT 'inserted-key', order_request_json || '{\"idempotency_key\": \"inserted-key\"}',"
      " md5('inserted-key'), 'failed' FROM orders.outbox_orders WHERE idempotency_key = 'changed-key';"
      "UPDATE orders.outbox_orders SET status = 'failed' WHERE idempotency_key = 'changed-key';"
      "UPDATE orders.outbox_orders SET status = 'failed', next_run_at = now() + interval '1 day'"
      " WHERE idempotency_key = 'cleared-key';"
      "UPDATE orders.outbox_orders SET next_run_at = NULL WHERE idempotency_key = 'cleared-key'");
  EXPECT_EQ(
      value("SELECT count(*) FROM orders.outbox_orders WHERE status = 'failed' AND next_run_at <= now()"),
      "3");
  const auto worker = node();
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "3");
}

TEST_F(ByHand, WhatTheProgramDoesItselfIsNoChangeByHand) {
  const auto worker = node({"TODOKE_BROKER_PAPER_FIRST=down"});
  accept("program-key");
  await_status("program-key", "succeeded");
  EXPECT_EQ(value("SELECT count(*) FROM orders.audit"), "0");
}

}  // namespace
}  // namespace todoke::test
