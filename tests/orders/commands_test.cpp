// `todoke orders`, and the SQL of the protocol and of docs/orders.md in `todoke psql`.
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// The SQL that docs/orders.md gives to operators.
std::string manual_sql() {
  std::ifstream file(TODOKE_DOCS "/orders.md");
  std::ostringstream text;
  text << file.rdbuf();
  const auto page = text.str();
  const std::string opening = "```sql\n";
  const auto begin = page.find(opening, page.find("Plain SQL works as well, in `todoke psql`"));
  if (begin == std::string::npos) throw std::runtime_error("docs/orders.md has no SQL");
  const auto first = begin + opening.size();
  return page.substr(first, page.find("```", first) - first);
}

class OrderCommands : public OrdersTest {
 protected:
  Exit orders(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "orders");
    return todoke_on(test_database, std::move(arguments));
  }
  std::string done(std::vector<std::string> arguments) {
    const auto exit = orders(std::move(arguments));
    EXPECT_EQ(exit.code, 0) << exit.err;
    return exit.out;
  }
  std::string refused(std::vector<std::string> arguments) {
    const auto exit = orders(std::move(arguments));
    EXPECT_EQ(exit.code, 1) << exit.out;
    return exit.err;
  }
  // As if a worker held it.
  void hold(const std::string& key, const std::string& since) {
    run(fmt::format(
        "SET orders.actor = 'test'; UPDATE orders.outbox_orders SET status = 'sending', locked_by = 'w',"
        " claim_no = 1, locked_at = now() - interval '{}' WHERE idempotency_key = '{}'; RESET orders.actor",
        since, key));
  }
  std::string actions() { return value("SELECT string_agg(action, ',' ORDER BY id) FROM orders.audit"); }
};

TEST_F(OrderCommands, AnAbortedOrderIsRequeuedAndSent) {
  accept("requeue-key");
  done({"abort", "requeue-key", "--reason", "a test"});
  EXPECT_EQ(of("requeue-key", "concat_ws(',', status, last_error_code)"), "aborted,ABORTED_BY_OPERATOR");
  EXPECT_EQ(ledger("requeue-key", "concat_ws(',', status, http_status)"), "failed,409");
  EXPECT_THAT(refused({"abort", "requeue-key"}), HasSubstr("settled already"));
  done({"requeue", "requeue-key"});
  EXPECT_EQ(of("requeue-key", "concat_ws(',', status, attempts)"), "pending,0");
  EXPECT_EQ(actions(), "abort,requeue");
  EXPECT_EQ(
      value(
          "SELECT concat_ws(',', reason, before ->> 'status', after ->> 'status') FROM orders.audit LIMIT 1"),
      "a test,pending,aborted");
  const auto worker = node();
  await_status("requeue-key", "succeeded");
  EXPECT_THAT(refused({"requeue", "requeue-key"}), HasSubstr("succeeded"));
}

TEST_F(OrderCommands, ALiveOrderIsReleasedByForceOnlyAndIsInDoubtThen) {
  accept("release-key");
  EXPECT_THAT(refused({"release", "release-key"}), HasSubstr("no worker holds it"));
  hold("release-key", "1 s");
  EXPECT_THAT(refused({"release", "release-key"}), HasSubstr("--force"));
  EXPECT_THAT(refused({"abort", "release-key"}), HasSubstr("--force"));
  done({"release", "release-key", "--force"});
  EXPECT_EQ(of("release-key", "concat_ws(',', status, claim_no, in_doubt, locked_by)"), "pending,2,t");
  EXPECT_EQ(actions(), "release");
}

TEST_F(OrderCommands, ALapsedOrderIsReleasedWithoutForce) {
  accept("lapsed-key");
  hold("lapsed-key", "1 hour");
  done({"release", "lapsed-key"});
  EXPECT_EQ(of("lapsed-key", "concat_ws(',', status, in_doubt)"), "pending,t");
}

TEST_F(OrderCommands, AnOrderAbortedByForceCarriesTheDoubt) {
  accept("abort-key");
  hold("abort-key", "1 s");
  done({"abort", "abort-key", "--force"});
  EXPECT_EQ(of("abort-key", "concat_ws(',', status, claim_no, in_doubt)"), "aborted,2,t");
  EXPECT_EQ(ledger("abort-key", "response_payload_json ->> 'warnings'"), "[\"IN_DOUBT\"]");
  EXPECT_THAT(done({"list", "--in-doubt"}), HasSubstr("ABORTED_BY_OPERATOR"));
}

TEST_F(OrderCommands, AbortingAnOrderOfAnotherContentLeavesTheLedgerAlone) {
  accept("foreign-key-1");
  accept("foreign-key-2");
  run("SET orders.actor = 'test'; UPDATE orders.idempo_ledger SET request_digest = 'another', status ="
      " CASE idempotency_key WHEN 'foreign-key-2' THEN 'succeeded' ELSE 'accepted' END; RESET orders.actor");
  for (const auto* key : {"foreign-key-1", "foreign-key-2"}) {
    const auto before = ledger(key, "idempo_ledger::text");
    done({"abort", key});
    EXPECT_EQ(of(key, "concat_ws(',', status, last_error_code)"), "aborted,IDEMPOTENCY_CONFLICT");
    EXPECT_EQ(ledger(key, "idempo_ledger::text"), before);
  }
  EXPECT_EQ(actions(), "abort,abort");
}

TEST_F(OrderCommands, AnOrderThatHasFailedByItsLedgerIsNotReleased) {
  accept("failed-key");
  run("SET orders.actor = 'test'; UPDATE orders.idempo_ledger SET status = 'failed', http_status = 409;"
      "UPDATE orders.outbox_orders SET status = 'sending', locked_by = 'gone', locked_at = now() - interval "
      "'1 h';"
      "RESET orders.actor");
  EXPECT_THAT(refused({"release", "failed-key"}), HasSubstr("has failed by its ledger"));
  EXPECT_EQ(of("failed-key", "status"), "sending");
  const auto worker = node();
  await_status("failed-key", "aborted");
}

TEST_F(OrderCommands, AnOutcomeThatTheOperatorKnowsIsRecordedAndSuccessIsFinal) {
  accept("settle-key");
  EXPECT_THAT(refused({"settle", "settle-key", "--result", "{\"status\": \"error\"}"}),
              HasSubstr("reason_code"));
  done({"settle", "settle-key", "--result", "{\"status\": \"error\", \"reason_code\": \"BROKER_REJECTED\"}"});
  EXPECT_EQ(of("settle-key", "concat_ws(',', status, last_error_code)"), "aborted,BROKER_REJECTED");
  done({"settle", "settle-key", "--result", "{\"status\": \"ok\"}"});
  EXPECT_EQ(of("settle-key", "status"), "succeeded");
  EXPECT_EQ(
      ledger("settle-key", "concat_ws(',', status, http_status, response_payload_json ->> 'instrument')"),
      "succeeded,200,BTC-USD");
  EXPECT_THAT(refused({"settle", "settle-key", "--result", "{\"status\": \"ok\"}"}), HasSubstr("final"));
}

TEST_F(OrderCommands, AHeldOrderIsSettledByForceOnlyAndItsWorkerSettlesNothing) {
  PaperHold broker(test_database);
  const auto worker = node({"BROKER_TIMEOUT_MS=60000", "OUTBOX_LOCK_LEASE_SEC=90"});
  accept("held-key");
  broker.await_orders(1);
  std::vector<std::string> settle{"settle", "held-key", "--result",
                                  R"({"status": "error", "reason_code": "BROKER_REJECTED"})"};
  EXPECT_THAT(refused(settle), HasSubstr("--force"));
  EXPECT_EQ(of("held-key", "concat_ws(',', status, claim_no)"), "sending,1");
  EXPECT_EQ(ledger("held-key", "status"), "accepted");
  settle.emplace_back("--force");
  done(settle);
  EXPECT_EQ(of("held-key", "concat_ws(',', status, claim_no, last_error_code, locked_by)"),
            "aborted,2,BROKER_REJECTED");
  const auto row = of("held-key", "outbox_orders::text");
  const auto result = ledger("held-key", "idempo_ledger::text");
  // The broker takes the order, and the worker comes back with it.
  broker.release();
  await("SELECT count(*) FROM orders.sends", "1");
  EXPECT_EQ(value("SELECT concat_ws(',', outcome, claim_no, fenced) FROM orders.sends"), "ok,1,t");
  EXPECT_EQ(of("held-key", "outbox_orders::text"), row);
  EXPECT_EQ(ledger("held-key", "idempo_ledger::text"), result);
  EXPECT_EQ(actions(), "settle");
  worker->wait_for_metric("outbox_fenced_total", 1);
  EXPECT_EQ(worker->metric("outbox_processed_total{outcome=\"succeeded\"}"), 0);
}

TEST_F(OrderCommands, ContentIsMaskedUnlessItIsRevealedWhichIsAudited) {
  accept("masked-key", "HIDDEN.INSTR");
  const auto masked = done({"show", "masked-key"});
  EXPECT_THAT(masked, Not(HasSubstr("HIDDEN.INSTR")));
  EXPECT_THAT(masked, Not(HasSubstr("masked-key")));
  EXPECT_THAT(masked, HasSubstr("pending"));
  EXPECT_THAT(done({"list"}), Not(HasSubstr("masked-key")));
  EXPECT_EQ(actions(), "");
  EXPECT_THAT(done({"show", of("masked-key", "id"), "--reveal"}), HasSubstr("HIDDEN.INSTR"));
  EXPECT_EQ(actions(), "reveal");
}

TEST_F(OrderCommands, ABrokersMessageIsMaskedLikeContent) {
  accept("message-key");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET status = 'failed', last_error_code ="
      " 'BROKER_DOWN', last_error_msg = 'the broker answered 503: 5 BTC too many'; RESET orders.actor");
  const auto masked = done({"show", "message-key"});
  EXPECT_THAT(masked, HasSubstr("BROKER_DOWN"));
  EXPECT_THAT(masked, Not(HasSubstr("5 BTC too many")));
  EXPECT_THAT(done({"show", "message-key", "--reveal"}), HasSubstr("5 BTC too many"));
}

TEST_F(OrderCommands, AListIsFilteredByInstrumentAdapterAndTime) {
  accept("filter-key-1");
  accept("filter-key-2", "ETH-USD");
  accept("filter-key-3", "ETH-USD");
  run("SET orders.actor = 'test';"
      "UPDATE orders.outbox_orders SET adapter = 'http' WHERE idempotency_key = 'filter-key-2';"
      "INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, began_at, ended_at, outcome, worker)"
      " SELECT id, '', 1, 'http', now(), now(), 'ok', 'w' FROM orders.outbox_orders WHERE idempotency_key ="
      " 'filter-key-3';"
      "UPDATE orders.outbox_orders SET created_at = '2026-01-01T00:00:00Z' WHERE idempotency_key ="
      " 'filter-key-3'; RESET orders.actor");
  const auto listed = [this](std::vector<std::string> filter) {
    filter.insert(filter.begin(), "list");
    const auto text = done(std::move(filter));
    std::string found;
    for (const auto* key : {"filter-key-1", "filter-key-2", "filter-key-3"}) {
      const auto hash = value(fmt::format("SELECT left(orders.key_hash('{}'), 12)", key));
      if (text.find(hash) != std::string::npos) found += key[std::string_view(key).size() - 1];
    }
    return found;
  };
  EXPECT_EQ(listed({}), "123");
  EXPECT_EQ(listed({"--instrument", "ETH-USD"}), "23");
  EXPECT_EQ(listed({"--adapter", "http"}), "23");
  EXPECT_EQ(listed({"--adapter", "fix"}), "");
  EXPECT_EQ(listed({"--since", "2026-01-02T00:00:00Z"}), "12");
  EXPECT_EQ(listed({"--since", "2026-01-02"}), "12");
  EXPECT_THAT(done({"list", "--instrument", "ETH-USD", "--since", "2026-01-02"}), HasSubstr("  http  "));
  EXPECT_EQ(listed({"--until", "2026-01-02T00:00:00Z"}), "3");
  EXPECT_EQ(listed({"--instrument", "ETH-USD", "--since", "2026-01-02T00:00:00Z"}), "2");
  EXPECT_EQ(orders({"list", "--since", "yesterday"}).code, 2);
  EXPECT_EQ(orders({"list", "--adapter", "papr"}).code, 2);
  EXPECT_EQ(orders({"list", "--instrument", "eth"}).code, 2);
}

TEST_F(OrderCommands, ARequeueTakesAFilterAndLeavesDoubtAloneUnlessItIsAskedFor) {
  for (const auto* key : {"bulk-key-1", "bulk-key-2", "bulk-key-3"}) {
    accept(key, "ETH-USD");
    done({"abort", key});
  }
  accept("bulk-key-4");
  done({"abort", "bulk-key-4"});
  accept("bulk-key-5", "ETH-USD");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET in_doubt = true WHERE idempotency_key ="
      " 'bulk-key-3'; RESET orders.actor");
  const auto text = done({"requeue", "--instrument", "ETH-USD", "--status", "aborted", "--reason", "mended"});
  EXPECT_THAT(text, HasSubstr("\n2 orders requeued\n1 in doubt were left alone"));
  const auto by_status =
      "SELECT string_agg(right(idempotency_key, 1), '' ORDER BY id) FROM orders.outbox_orders"
      " WHERE status = 'aborted'";
  EXPECT_EQ(value(by_status), "34");
  EXPECT_EQ(value("SELECT string_agg(concat_ws(',', reason, before ->> 'status', after ->> 'status'), ';')"
                  " FROM orders.audit WHERE action = 'requeue'"),
            "mended,aborted,pending;mended,aborted,pending");
  EXPECT_THAT(done({"requeue", "--in-doubt"}), HasSubstr("1 orders requeued"));
  EXPECT_EQ(value(by_status), "4");
  EXPECT_EQ(orders({"requeue", "--status", "succeeded"}).code, 2);
  const auto worker = node();
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "4");
}

TEST_F(OrderCommands, StatsNameAnOpenBreaker) {
  for (int i = 0; i < 8; ++i) accept(fmt::format("breaker-key-{}", i));
  const auto worker = node({"TODOKE_BROKER_PAPER_OUTAGE_SEC=3600"});
  worker->wait_for_metric("outbox_breaker_state{adapter=\"paper\"}", 3);
  wait_until("the breaker to be named", [&] {
    const auto text = done({"stats"});
    return text.find("breaker         open  " + worker->worker()) != std::string::npos ||
           text.find("breaker         probing  " + worker->worker()) != std::string::npos;
  });
}

TEST_F(OrderCommands, AnOrderIsFoundByTheHashThatAListShowsAndInTheArchive) {
  accept("hashed-key");
  const auto id = of("hashed-key", "id");
  const auto shown = value("SELECT left(orders.key_hash('hashed-key'), 12)");
  EXPECT_THAT(done({"list"}), HasSubstr(shown));
  EXPECT_THAT(done({"show", shown}), HasSubstr("id              " + id + "\n"));
  EXPECT_THAT(refused({"show", "ffffffffffff"}), HasSubstr("no such order"));
  done({"abort", shown});
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET created_at = now() - interval '9 days',"
      " updated_at = now() - interval '8 days'; RESET orders.actor");
  const auto running = node();
  await("SELECT count(*) FROM orders.outbox_orders_archive", "1");
  for (const auto& which : {std::string("hashed-key"), id}) {
    EXPECT_THAT(done({"show", which, "--reveal"}), AllOf(HasSubstr("archived_at"), HasSubstr("hashed-key")))
        << which;
  }
  EXPECT_EQ(value("SELECT count(*) FROM orders.audit WHERE action = 'reveal' AND outbox_id = " + id), "2");
  EXPECT_THAT(refused({"requeue", id}), HasSubstr("archived"));
}

TEST_F(OrderCommands, ASecondHaltTakesNothingBack) {
  done({"halt", "--instrument", "BTC-USD", "--refuse-intake", "--reason", "news"});
  EXPECT_THAT(done({"halt", "--instrument", "BTC-USD"}), HasSubstr("New ones are refused"));
  EXPECT_EQ(value("SELECT concat_ws(',', intake_refused, reason) FROM orders.halts"), "t,news");
  EXPECT_EQ(actions(), "halt,halt");
}

TEST_F(OrderCommands, AHaltStopsAWorkerAndAResumeLetsItGoOn) {
  done({"halt", "--instrument", "BTC-USD", "--reason", "news"});
  EXPECT_THAT(done({"stats"}), HasSubstr("instrument BTC-USD"));
  const auto worker = node();
  accept("halt-key-1");
  accept("halt-key-2", "ETH-USD");
  await_status("halt-key-2", "succeeded");
  EXPECT_EQ(of("halt-key-1", "status"), "pending");
  EXPECT_THAT(refused({"resume"}), HasSubstr("no halt"));
  done({"resume", "--instrument", "BTC-USD"});
  await_status("halt-key-1", "succeeded");
  EXPECT_EQ(actions(), "halt,resume");
}

TEST_F(OrderCommands, AHaltThatMatchesNothingIsRefusedAndAHaltIsSeen) {
  EXPECT_EQ(orders({"halt", "--instrument", "btc-usd"}).code, 2);
  EXPECT_EQ(orders({"halt", "--adapter", "banana"}).code, 2);
  const auto worker = node();
  EXPECT_THAT(done({"halt"}), HasSubstr("New ones are accepted and wait."));
  EXPECT_THAT(done({"halt", "--refuse-intake"}), HasSubstr("New ones are refused (503 HALTED)."));
  worker->wait_for_metric("outbox_halts", 1);
  EXPECT_THAT(worker->health(), HasSubstr("orders are halted"));
}

TEST_F(OrderCommands, AnOutcomeMustFitTheOrder) {
  accept("fits-key");
  run("SET orders.actor = 'test'; UPDATE orders.outbox_orders SET adapter = 'http'; RESET orders.actor");
  const auto settle = [this](const std::string& result) {
    return refused({"settle", "fits-key", "--result", result});
  };
  EXPECT_THAT(settle(R"({"status":"ok","fills":[{"px":1,"qty":99,"ts":"2025-08-24T00:00:00Z"}]})"),
              HasSubstr("the fills have a qty of 99 together, the order of 2"));
  EXPECT_THAT(settle(R"({"status":"ok","executed_qty":1})"),
              HasSubstr("executed_qty is the sum of the fills"));
  EXPECT_THAT(settle(R"({"status":"error","reason_code":"BANANA"})"), HasSubstr("needs a reason_code"));
  EXPECT_THAT(settle(R"({"status":"ok","reason_code":"BROKER_REJECTED"})"), HasSubstr("has no reason_code"));
  done({"settle", "fits-key", "--result",
        R"({"status":"ok","fills":[{"px":10,"qty":2,"ts":"2025-08-24T00:00:00Z"}]})"});
  EXPECT_EQ(ledger("fits-key", "response_payload_json ->> 'cost'"), "20");
  EXPECT_EQ(ledger("fits-key", "response_payload_json -> 'broker' ->> 'name'"), "http");
}

TEST_F(OrderCommands, StatsTellWhatIsWhereAndThatNobodySends) {
  accept("stats-key");
  const auto text = done({"stats"});
  EXPECT_THAT(text, HasSubstr("pending         1"));
  EXPECT_THAT(text, HasSubstr("no worker runs"));
}

TEST_F(OrderCommands, AWorkerThatDiedDoesNotCountAsOneThatRuns) {
  run("INSERT INTO orders.workers (worker, adapter, seen_at) VALUES ('dead', 'paper', now() - interval '3 "
      "h')");
  const auto text = done({"stats"});
  EXPECT_THAT(text, ContainsRegex("dead  paper  seen 108[0-9]+ s ago: gone"));
  EXPECT_THAT(text, HasSubstr("no worker runs"));
  const auto worker = node();
  wait_until("the worker to be counted",
             [&] { return done({"stats"}).find("no worker runs") == std::string::npos; });
}

TEST_F(OrderCommands, AnUnknownOrderAndAWrongWordAreToldPlainly) {
  EXPECT_THAT(refused({"show", "nobody-knows"}), HasSubstr("no such order"));
  EXPECT_EQ(orders({"shwo", "x"}).code, 2);
  EXPECT_EQ(orders({"list", "--status", "sent"}).code, 2);
  EXPECT_EQ(orders({"requeue"}).code, 2);
}

TEST_F(OrderCommands, ReconcileNamesWhatTheBooksDisagreeAbout) {
  const auto worker = node();
  for (const auto* key : {"books-key-1", "books-key-2", "books-key-3"}) {
    accept(key);
    await_status(key, "succeeded");
  }
  worker->stop();
  const std::vector<std::string> ask{"reconcile", "--adapter", "paper", "--since", "2020-01-01T00:00:00Z"};
  EXPECT_THAT(done(ask),
              HasSubstr("3 orders, 0 not settled yet, 3 compared with the broker, 0 with differences"));
  run("DELETE FROM orders.paper_book WHERE broker_id = 'books-key-1'");
  run("UPDATE orders.paper_book SET qty = 1 WHERE broker_id = 'books-key-2'");
  accept("books-key-4");
  const auto compared = orders(ask);
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.out, HasSubstr("here it succeeded; the broker does not have it"));
  EXPECT_THAT(compared.out, HasSubstr("the ledger has executed_qty 2, the broker 1"));
  EXPECT_THAT(compared.out,
              HasSubstr("4 orders, 1 not settled yet, 3 compared with the broker, 2 with differences"));
  EXPECT_THAT(compared.out, testing::Not(HasSubstr("books-key")));
  EXPECT_EQ(orders({"reconcile"}).code, 2);
  EXPECT_EQ(orders({"reconcile", "--adapter", "papr", "--since", "2020-01-01T00:00:00Z"}).code, 2);
  EXPECT_EQ(orders({"reconcile", "--adapter", "paper", "--since", "yesterday"}).code, 2);
}

TEST_F(OrderCommands, TheProtocolsSqlWorksAsWrittenInTheShell) {
  accept("psql-key");
  hold("psql-key", "1 hour");
  const auto psql = [this](const std::string& statement) {
    return todoke_on(test_database, {"psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-c", statement});
  };
  EXPECT_EQ(psql("SELECT status, count(*) FROM outbox_orders GROUP BY 1;").out, "sending|1\n");
  EXPECT_EQ(psql("UPDATE outbox_orders\n   SET status='pending', locked_by=NULL, locked_at=NULL\n"
                 " WHERE status='sending' AND locked_at < now() - interval '120 seconds';")
                .out,
            "UPDATE 1\n");
  EXPECT_EQ(of("psql-key", "concat_ws(',', status, in_doubt)"), "pending,t");
  EXPECT_EQ(value("SELECT actor LIKE 'sql:%' FROM orders.audit"), "t");
}

TEST_F(OrderCommands, TheManualsSqlRequeuesAndReleasesInTheShellAndTheOrdersAreSent) {
  const Environment down_once{"TODOKE_BROKER_PAPER_FIRST=down", "OUTBOX_MAX_ATTEMPTS=1"};
  auto worker = node(down_once);
  accept("aborted-key");
  await_status("aborted-key", "aborted");
  worker->stop();
  accept("lapsed-key");
  hold("lapsed-key", "1 hour");

  auto statements = manual_sql();
  const std::string id = "4711";
  ASSERT_THAT(statements, HasSubstr("WHERE id = " + id));
  statements.replace(statements.find(id), id.size(), of("aborted-key", "id"));
  const TempFolder folder;
  const auto file = (folder.path() / "manual.sql").string();
  std::ofstream(file) << statements;
  const auto shell = todoke_on(test_database, {"psql", "-X", "-At", "-v", "ON_ERROR_STOP=1", "-f", file});
  ASSERT_EQ(shell.code, 0) << shell.err;
  EXPECT_THAT(shell.out,
              AllOf(HasSubstr("aborted|1\n"), HasSubstr("sending|1\n"), EndsWith("\nUPDATE 1\nUPDATE 1\n")));
  EXPECT_EQ(of("aborted-key", "concat_ws(',', status, attempts, last_error_code)"), "pending,0");
  EXPECT_EQ(of("lapsed-key", "concat_ws(',', status, in_doubt, locked_by)"), "pending,t");
  EXPECT_EQ(value("SELECT string_agg(action, ',' ORDER BY id) FROM orders.audit WHERE actor LIKE 'sql:%'"),
            "update outbox_orders,update outbox_orders");

  worker = node(down_once);
  await_status("aborted-key", "succeeded");
  await_status("lapsed-key", "succeeded");
  EXPECT_EQ(ledger("aborted-key", "concat_ws(',', status, http_status)"), "succeeded,200");
  EXPECT_EQ(
      value("SELECT string_agg(broker_id || ' ' || copies, ',' ORDER BY broker_id) FROM orders.paper_book"),
      "aborted-key 1,lapsed-key 1");
}

}  // namespace
}  // namespace todoke::test
