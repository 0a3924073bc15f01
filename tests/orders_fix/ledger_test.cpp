// Reports that come when nobody waits for them.
#include <fmt/format.h>

#include "orders/core/exec_result.hpp"
#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::ElementsAre;

class LateReportTest : public FixTest {
 protected:
  // As the worker does.
  void settle(const std::string& key, const orders::SendOutcome& outcome) {
    auto result = outcome.result;
    result.warnings.emplace_back("RISK_NOT_ENFORCED");
    run(
        fmt::format("SET orders.actor = 'worker';"
                    "UPDATE orders.outbox_orders SET status = 'succeeded' WHERE idempotency_key = '{0}';"
                    "UPDATE orders.idempo_ledger SET status = 'succeeded', result_digest = '{1}',"
                    " response_payload_json = '{2}' WHERE idempotency_key = '{0}'",
                    key, orders::result_digest(result), orders::to_json(result)));
  }
  void set_row(const std::string& key, const std::string& changes) {
    run(fmt::format(
        "SET orders.actor = 'worker'; UPDATE orders.outbox_orders SET {} WHERE idempotency_key = '{}'",
        changes, key));
  }
  std::string row(const std::string& key, const std::string& column) {
    return value(
        fmt::format("SELECT {} FROM orders.outbox_orders WHERE idempotency_key = '{}'", column, key));
  }
  std::string result(const std::string& key, const std::string& path) {
    return value(
        fmt::format("SELECT response_payload_json #>> '{}' FROM orders.idempo_ledger"
                    " WHERE idempotency_key = '{}'",
                    path, key));
  }
  static std::string all_applied() {
    return "SELECT count(*) FROM orders.fix_orders WHERE reports_stored > reports_applied";
  }
  void send_all(const FixAnswer& answer) {
    for (const auto& message : answer.messages) broker.send(message);
  }
};

TEST_F(LateReportTest, LaterFillsOfAWorkingOrderAreAddedToItsResult) {
  broker.answer_orders([](const FixMessage& order) {
    return FixAnswer{{acknowledge(order), fill(order, "L1", "0.5", "10", "0.5", "10")}, false};
  });
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("working-1", TimeInForce::gtc));
  settle("working-1", outcome);
  const auto sent = broker.got("D").at(0);
  broker.send(fill(sent, "L2", "1", "10.25", "1.5", "10.1666"));
  wait_until("the second fill", [&] { return result("working-1", "{executed_qty}") == "1.5"; });
  EXPECT_EQ(result("working-1", "{fills,1,px}"), "10.25");
  EXPECT_THAT(result("working-1", "{warnings}"), testing::HasSubstr("WORKING"));
  broker.send(fill(sent, "L3", "0.5", "10.5", "2", "10.25"));
  wait_until("the last fill", [&] { return result("working-1", "{executed_qty}") == "2"; });
  EXPECT_EQ(result("working-1", "{warnings}"), R"(["RISK_NOT_ENFORCED"])");
  EXPECT_EQ(result("working-1", "{cost}"), "20.5");
  // The digest goes with it.
  const auto parsed = orders::parse_exec_result(
      value("SELECT response_payload_json FROM orders.idempo_ledger WHERE idempotency_key = 'working-1'"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(value("SELECT result_digest FROM orders.idempo_ledger"), orders::result_digest(*parsed));
}

TEST_F(LateReportTest, AWorkingOrderThatIsCancelledLaterIsUnfilled) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{acknowledge(order)}, false}; });
  const auto one = side();
  one->await_logon();
  settle("cancelled-1", one->send(order("cancelled-1", TimeInForce::gtc)));
  auto cancelled = ended(broker.got("D").at(0), "4", "0");
  // By the broker's desk, under an id of its own.
  cancelled.fields[41] = cancelled.fields[11];
  cancelled.fields[11] = "desk-7";
  broker.send(cancelled);
  wait_until("the end",
             [&] { return result("cancelled-1", "{warnings}") == R"(["UNFILLED","RISK_NOT_ENFORCED"])"; });
}

TEST_F(LateReportTest, ABustedFillIsTakenOutAgain) {
  broker.answer_orders([](const FixMessage& order) {
    return FixAnswer{{acknowledge(order), fill(order, "B1", "2", "10", "2", "10")}, false};
  });
  const auto one = side();
  one->await_logon();
  settle("busted-1", one->send(order("busted-1")));
  auto bust = ended(broker.got("D").at(0), "4", "0");
  bust.fields[150] = "H";
  bust.fields[19] = "B1";
  broker.send(bust);
  wait_until("the fill to go", [&] { return result("busted-1", "{executed_qty}") == "0"; });
}

TEST_F(LateReportTest, AnOrderThatWaitsInDoubtIsDueAtOnce) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  const auto one = side();
  one->await_logon();
  EXPECT_TRUE(one->send(order("in-doubt-1"), kSilence).in_doubt);
  set_row("in-doubt-1", "status = 'failed', in_doubt = true, next_run_at = now() + interval '1 hour'");
  send_all(whole(broker.got("D").at(0)));
  wait_until("it to be due",
             [&] { return row("in-doubt-1", "status = 'pending' AND next_run_at <= now()") == "true"; });
  EXPECT_EQ(row("in-doubt-1", "in_doubt"), "true");
}

TEST_F(LateReportTest, AnOrderThatWasAbortedInDoubtIsPutBackWithAnAuditRow) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  const auto one = side();
  one->await_logon();
  EXPECT_TRUE(one->send(order("aborted-1"), kSilence).in_doubt);
  set_row("aborted-1", "status = 'aborted', in_doubt = true, attempts = 6");
  run("SET orders.actor = 'worker'; UPDATE orders.idempo_ledger SET status = 'failed'");
  send_all(whole(broker.got("D").at(0)));
  wait_until("it to be pending", [&] { return row("aborted-1", "status") == "pending"; });
  EXPECT_EQ(row("aborted-1", "attempts"), "6");
  EXPECT_EQ(value("SELECT actor || ' ' || action FROM orders.audit"), "fix late report");
}

TEST_F(LateReportTest, ALateRejectionWakesNobody) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  const auto one = side();
  one->await_logon();
  EXPECT_TRUE(one->send(order("nothing-1"), kSilence).in_doubt);
  set_row("nothing-1", "status = 'aborted', in_doubt = true");
  broker.send(reject(broker.got("D").at(0), "3"));
  await("SELECT count(*) FROM orders.fix_reports", "1");
  await(all_applied(), "0");
  EXPECT_EQ(row("nothing-1", "status"), "aborted");
}

TEST_F(LateReportTest, AReportThatComesBetweenTheTryAndItsSettlingIsNotLost) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{acknowledge(order)}, false}; });
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("between-1", TimeInForce::gtc));
  // Still `sending` when the fill comes.
  broker.send(fill(broker.got("D").at(0), "M1", "2", "10", "2", "10"));
  await("SELECT count(*) FROM orders.fix_reports", "2");
  settle("between-1", outcome);
  wait_until("the fill", [&] { return result("between-1", "{executed_qty}") == "2"; });
}

TEST_F(LateReportTest, TheNextOwnerBringsInWhatTheLastOneLeft) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{acknowledge(order)}, false}; });
  auto one = side("host:1:aa");
  one->await_logon();
  const auto outcome = one->send(order("left-over-1", TimeInForce::gtc));
  settle("left-over-1", outcome);
  const auto sent = broker.got("D").at(0);
  one.reset();
  wait_until("logout", [&] { return !broker.is_logged_on(); });
  // While nobody is there: it waits in the broker's session.
  broker.lose(fill(sent, "Q1", "2", "10", "2", "10"));
  const auto two = side("host:2:bb");
  wait_until("the fill", [&] { return result("left-over-1", "{executed_qty}") == "2"; });
}

TEST_F(LateReportTest, ReportsThatComeAgainToTheNextOwnerAreKnownByTheirExecId) {
  auto one = side("host:1:aa");
  one->await_logon();
  settle("again-1", one->send(order("again-1")));
  one.reset();
  // As after a crash: the number in is behind, and the broker sends its reports once more.
  run("UPDATE orders.fix_sessions SET next_in = 2");
  const auto two = side("host:2:bb");
  wait_until("both reports again",
             [&] { return two->metric("orders_fix_reports_total{kind=\"repeated\"}") == 2; });
  await(all_applied(), "0");
  EXPECT_EQ(value("SELECT count(*) FROM orders.fix_reports"), "2");
  EXPECT_EQ(result("again-1", "{executed_qty}"), "2");
  EXPECT_EQ(broker.got("D").size(), 1U);
}

TEST_F(LateReportTest, AReportForNobodyIsCountedAndKept) {
  const auto one = side();
  one->await_logon();
  FixMessage stranger;
  stranger.fields = {{11, "stranger-1"}, {55, "BTC-USD"}, {54, "1"}, {38, "2"}};
  broker.send(fill(stranger, "S1", "2", "10", "2", "10"));
  wait_until("it to be counted",
             [&] { return one->metric("orders_fix_reports_total{kind=\"unmatched\"}") == 1; });
  EXPECT_EQ(value("SELECT cl_ord_id FROM orders.fix_reports"), "stranger-1");
}

TEST_F(LateReportTest, TextThatIsNoAsciiDoesNotStopTheSession) {
  broker.answer_orders([](const FixMessage& order) {
    auto told = acknowledge(order);
    told.fields[58] = "caf\xe9 \xff";
    return FixAnswer{{told, fill(order, "T1", "2", "10", "2", "10")}, false};
  });
  const auto one = side();
  one->await_logon();
  EXPECT_EQ(one->send(order("bytes-1")).result.status, orders::ExecStatus::ok);
  EXPECT_EQ(value("SELECT text FROM orders.fix_reports WHERE text <> ''"), "caf? ?");
}

TEST_F(LateReportTest, ReportsOfOrdersThatAreOverGoToTheArchiveAndThoseOfAWorkingOneStay) {
  broker.answer_orders([](const FixMessage& order) {
    return order.at(11) == "working-2" ? FixAnswer{{acknowledge(order)}, false} : whole(order);
  });
  auto one = side("host:1:aa");
  one->await_logon();
  settle("over-1", one->send(order("over-1")));
  settle("working-2", one->send(order("working-2", TimeInForce::gtc)));
  await(all_applied(), "0");
  one.reset();
  run("UPDATE orders.fix_orders SET touched_at = now() - interval '91 days';"
      "UPDATE orders.fix_reports SET received_at = now() - interval '91 days'");
  const auto two = side("host:2:bb");
  await("SELECT count(*) FROM orders.fix_reports_archive", "2");
  EXPECT_EQ(value("SELECT string_agg(DISTINCT a.cl_ord_id || ' ' || (a.outbox_id = o.id)::text, ',')"
                  " FROM orders.fix_reports_archive a JOIN orders.outbox_orders o ON o.idempotency_key = "
                  "a.cl_ord_id"),
            "over-1 true");
  EXPECT_EQ(value("SELECT string_agg(cl_ord_id, ',') FROM orders.fix_orders"), "working-2");
  // Months later the rest of it is filled.
  two->await_logon();
  broker.send(fill(broker.got("D").at(1), "W1", "2", "10", "2", "10"));
  wait_until("the fill", [&] { return result("working-2", "{executed_qty}") == "2"; });
  EXPECT_EQ(value("SELECT expires_at > now() + interval '47 hours' FROM orders.idempo_ledger"
                  " WHERE idempotency_key = 'working-2'"),
            "true");
}

}  // namespace
}  // namespace todoke::test
