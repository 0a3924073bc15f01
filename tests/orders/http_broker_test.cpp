// The adapter `http` against a broker that is a real HTTP server: it keeps a book by key, executes each key
// once, and fails as it is told.
#include <deque>
#include <fstream>
#include <map>
#include <mutex>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "harness/certificate.hpp"
#include "harness/http_rig.hpp"
#include "rig.hpp"

namespace todoke::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HttpBroker {
 public:
  // `unavailable` and `odd` execute: the one answers 503, the other with fills that can't be read.
  enum class Mood { good, waiting, silent, busy, locked, broken, refusing, wordy, unavailable, odd };

  // With a certificate: over TLS only.
  explicit HttpBroker(const net::test::TestCertificate* certificate = nullptr)
      : is_secure_(certificate != nullptr) {
    if (certificate != nullptr) {
      server_.config.tls_cert = certificate->cert();
      server_.config.tls_key = certificate->key();
    }
    server_.router->add("POST", "/orders", [this](net::Request& request) { return take(request); });
    server_.router->add("GET", "/orders/{key}", [this](net::Request& request) { return show(request); });
    server_.start();
  }

  // The moods of the next requests; good ones follow.
  void next(std::deque<Mood> moods) {
    const std::lock_guard lock(mutex_);
    moods_ = std::move(moods);
  }
  // An order of somebody else under this key.
  void execute(const std::string& key) {
    const std::lock_guard lock(mutex_);
    ++executed_[key];
  }
  // Answers those that wait.
  void let_go() { waiting_.end(); }
  [[nodiscard]] std::string url(const std::string& target) const { return server_.url(target, is_secure_); }
  std::vector<net::Request> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int executions(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return executed_[key];
  }

 private:
  static constexpr const char* kFill =
      R"({"status":"ok","order_ref":"b-7","fills":[{"px":10.5,"qty":2,"ts":"2025-08-24T00:00:00Z"}]})";

  Task<net::Response> take(net::Request& request) {
    const auto key = std::string(request.headers.get("Idempotency-Key"));
    auto mood = Mood::good;
    bool again = false;
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      if (!moods_.empty()) {
        mood = moods_.front();
        moods_.pop_front();
      }
      const bool executes = mood == Mood::good || mood == Mood::waiting || mood == Mood::silent ||
                            mood == Mood::unavailable || mood == Mood::odd;
      if (executes) again = executed_[key]++ > 0;
      if (again) --executed_[key];
    }
    switch (mood) {
      case Mood::waiting:
        co_await waiting_.keep();
        break;
      case Mood::silent:
        co_await silence_.keep();
        break;
      case Mood::busy: {
        auto response = net::error_response(429, "BUSY", "later");
        response.headers.set("Retry-After", "1");
        co_return response;
      }
      case Mood::locked:
        co_return net::error_response(401, "UNAUTHORIZED", "who are you");
      case Mood::broken:
        co_return net::text_response(200, "<html>");
      case Mood::refusing:
        co_return net::error_response(422, "NO_MARGIN", "no margin");
      case Mood::wordy: {
        std::string reference = "xx";
        for (int i = 0; i < 100; ++i) reference += "\u3042";
        co_return net::json_response(201, R"({"status":"ok","order_ref":")" + reference + R"("})");
      }
      case Mood::unavailable:
        co_return net::error_response(503, "UNAVAILABLE", "the upstream did not answer");
      case Mood::odd:
        co_return net::json_response(201, R"({"status":"ok","order_ref":"b-8","fills":[{"px":"10.5"}]})");
      case Mood::good:
        break;
    }
    if (again) co_return net::error_response(409, "DUPLICATE_ORDER", "there is one already");
    co_return net::json_response(201, kFill);
  }

  Task<net::Response> show(net::Request& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    if (executed_[request.parameters.at("key")] == 0) co_return net::error_response(404, "NOT_FOUND", "no");
    co_return net::json_response(200, kFill);
  }

  const bool is_secure_;
  std::mutex mutex_;
  std::deque<Mood> moods_;
  std::vector<net::Request> requests_;
  std::map<std::string, int> executed_;
  net::test::Rig server_;
  net::test::Silence silence_{server_.worker()};
  net::test::Silence waiting_{server_.worker()};
};

using Mood = HttpBroker::Mood;

class HttpBrokerTest : public OrdersTest {
 protected:
  std::unique_ptr<OrderNode> worker(bool can_find = true, Environment more = {}) {
    more.emplace_back("TODOKE_BROKER_ADAPTER=http");
    more.push_back("TODOKE_ORDERS_HTTP_URL=" + broker.url("/orders"));
    if (can_find) more.push_back("TODOKE_ORDERS_HTTP_FIND_URL=" + broker.url("/orders/{key}"));
    return node(more);
  }

  std::string journal() {
    return value("SELECT string_agg(outcome, ',' ORDER BY claim_no) FROM orders.sends");
  }

  HttpBroker broker;
  TempFolder folder;
};

TEST_F(HttpBrokerTest, AnOrderGoesOutWithItsKeyAndTheTokenAndIsSettledByTheAnswer) {
  const auto file = folder.path() / "token";
  std::ofstream(file) << "s3cret\n";
  const auto running = worker(true, {"TODOKE_ORDERS_HTTP_TOKEN_FILE=" + file.string()});
  accept("http-0001");
  await_status("http-0001", "succeeded");
  ASSERT_EQ(broker.requests().size(), 1U);
  const auto request = broker.requests().front();
  EXPECT_EQ(request.headers.get("Idempotency-Key"), "http-0001");
  EXPECT_EQ(request.headers.get("Authorization"), "Bearer s3cret");
  EXPECT_EQ(request.headers.get("Content-Type"), "application/json");
  EXPECT_FALSE(request.headers.has("Possible-Resend"));
  EXPECT_FALSE(request.headers.has("traceparent"));
  EXPECT_THAT(request.body, HasSubstr(R"("instrument":"BTC-USD")"));
  EXPECT_EQ(ledger("http-0001", "response_payload_json ->> 'executed_qty'"), "2");
  EXPECT_EQ(ledger("http-0001", "response_payload_json -> 'broker' ->> 'order_ref'"), "b-7");
  EXPECT_THAT(running->process().err(), testing::Not(HasSubstr("s3cret")));
}

TEST_F(HttpBrokerTest, AnAnswerThatIsLostIsAskedForAndNothingIsExecutedTwice) {
  broker.next({Mood::silent});
  const auto running = worker();
  accept("http-0002");
  await_status("http-0002", "succeeded");
  EXPECT_EQ(broker.executions("http-0002"), 1);
  EXPECT_EQ(journal(), "BROKER_TIMEOUT,FOUND");
  EXPECT_EQ(of("http-0002", "concat_ws(',', attempts, in_doubt)"), "1,f");
}

TEST_F(HttpBrokerTest, WhereTheBrokerCantBeAskedItsWordThatItHasTheOrderSettlesIt) {
  broker.next({Mood::silent});
  const auto running = worker(false);
  accept("http-0003");
  await_status("http-0003", "succeeded");
  EXPECT_EQ(broker.executions("http-0003"), 1);
  EXPECT_EQ(broker.requests().back().headers.get("Possible-Resend"), "true");
  EXPECT_EQ(ledger("http-0003", "response_payload_json ->> 'warnings'"), R"(["WORKING"])");
}

TEST_F(HttpBrokerTest, ADuplicateOfWhatWasNeverSentIsLookedUp) {
  broker.execute("taken-key");
  const auto running = worker();
  accept("taken-key");
  await_status("taken-key", "succeeded");
  EXPECT_EQ(journal(), "FOUND");
  EXPECT_EQ(ledger("taken-key", "response_payload_json ->> 'executed_qty'"), "2");
  EXPECT_EQ(broker.executions("taken-key"), 1);
}

TEST_F(HttpBrokerTest, ADuplicateThatNobodyCanLookUpEndsInDoubtAndNeitherAsSuccessNorAsRefusal) {
  broker.execute("taken-key");
  const auto running = worker(false, {"OUTBOX_MAX_ATTEMPTS=3"});
  accept("taken-key");
  await_status("taken-key", "aborted");
  EXPECT_EQ(of("taken-key", "concat_ws(',', last_error_code, in_doubt, attempts)"), "INTERNAL_ERROR,t,3");
  EXPECT_EQ(ledger("taken-key", "response_payload_json ->> 'warnings'"), R"(["IN_DOUBT"])");
  EXPECT_EQ(broker.executions("taken-key"), 1);
}

TEST_F(HttpBrokerTest, AKeyThatWasTakenBeforeUsIsNoSuccessAfterARequeue) {
  broker.execute("taken-key");
  const auto running = worker(false, {"OUTBOX_MAX_ATTEMPTS=2"});
  accept("taken-key");
  await_status("taken-key", "aborted");
  const auto requeued = todoke_on(test_database, {"orders", "requeue", "taken-key"});
  EXPECT_EQ(requeued.code, 0) << requeued.err;
  await("SELECT concat_ws(',', status, claim_no) FROM orders.outbox_orders", "aborted,4");
  EXPECT_EQ(of("taken-key", "concat_ws(',', last_error_code, in_doubt)"), "INTERNAL_ERROR,t");
  EXPECT_EQ(ledger("taken-key", "response_payload_json ->> 'warnings'"), R"(["IN_DOUBT"])");
}

TEST_F(HttpBrokerTest, AKeyThatWasTakenBeforeUsIsNoSuccessAfterATryInDoubt) {
  broker.execute("taken-key");
  broker.next({Mood::good, Mood::unavailable});
  const auto running = worker(false, {"OUTBOX_MAX_ATTEMPTS=3"});
  accept("taken-key");
  await_status("taken-key", "aborted");
  EXPECT_EQ(journal(), "INTERNAL_ERROR,BROKER_DOWN,INTERNAL_ERROR");
  EXPECT_EQ(of("taken-key", "concat_ws(',', last_error_code, in_doubt)"), "INTERNAL_ERROR,t");
}

TEST_F(HttpBrokerTest, ATryThatWasInDoubtBeforeARequeueIsStillOursAfterIt) {
  broker.next({Mood::silent});
  const auto running = worker(false, {"OUTBOX_MAX_ATTEMPTS=1"});
  accept("ours-key");
  await_status("ours-key", "aborted");
  const auto requeued = todoke_on(test_database, {"orders", "requeue", "ours-key"});
  EXPECT_EQ(requeued.code, 0) << requeued.err;
  await_status("ours-key", "succeeded");
  EXPECT_EQ(ledger("ours-key", "response_payload_json ->> 'warnings'"), R"(["WORKING"])");
  EXPECT_EQ(broker.executions("ours-key"), 1);
}

TEST_F(HttpBrokerTest, AnOrderBehindA503IsInDoubtAndLookedUp) {
  broker.next({Mood::unavailable});
  const auto running = worker();
  accept("proxy-key");
  await_status("proxy-key", "succeeded");
  EXPECT_EQ(journal(), "BROKER_DOWN,FOUND");
  EXPECT_EQ(broker.executions("proxy-key"), 1);
}

TEST_F(HttpBrokerTest, AnOkWhoseFillsCantBeReadIsNotSentAgain) {
  broker.next({Mood::odd});
  const auto running = worker();
  accept("odd-key-1");
  await_status("odd-key-1", "succeeded");
  EXPECT_EQ(broker.requests().size(), 1U);
  EXPECT_EQ(ledger("odd-key-1", "response_payload_json ->> 'warnings'"), R"(["UNREADABLE"])");
  EXPECT_EQ(ledger("odd-key-1", "response_payload_json -> 'broker' ->> 'order_ref'"), "b-8");
  EXPECT_EQ(value("SELECT concat_ws(',', outcome, note) FROM orders.sends"), "ok,fills[0]");
  EXPECT_THAT(todoke_on(test_database, {"orders", "show", "odd-key-1"}).out,
              HasSubstr("could not be read: fills[0]"));
}

TEST_F(HttpBrokerTest, AnOrderStaysInDoubtWhenTheBrokerDoesNotKnowItYet) {
  broker.next({Mood::broken, Mood::locked, Mood::locked});
  const auto running = worker();
  accept("doubt-key");
  await_status("doubt-key", "succeeded");
  std::string seen;
  for (const auto& request : broker.requests()) {
    seen += request.method == "GET" ? "asked " : request.headers.has("Possible-Resend") ? "again " : "first ";
  }
  EXPECT_EQ(seen, "first asked again asked again asked again ");
  EXPECT_EQ(of("doubt-key", "concat_ws(',', attempts, in_doubt)"), "3,f");
}

TEST_F(HttpBrokerTest, ALedgerRowThatAnOperatorHasLockedHoldsUpNoClaim) {
  broker.next({Mood::refusing});
  const auto running = worker();
  accept("requeued-key");
  await_status("requeued-key", "aborted");
  SqlSession psql(test_database.url());
  psql.run("BEGIN; SELECT 1 FROM orders.idempo_ledger WHERE idempotency_key = 'requeued-key' FOR UPDATE");
  run("UPDATE orders.outbox_orders SET status = 'pending', attempts = 0, next_run_at = NULL");
  accept("free-key");
  await_status("free-key", "succeeded");
  EXPECT_EQ(of("requeued-key", "concat_ws(',', status, claim_no)"), "pending,1");
  psql.run("COMMIT");
  await_status("requeued-key", "succeeded");
  EXPECT_EQ(value("SELECT count(*) FROM orders.audit WHERE action = 'reopen ledger'"), "1");
}

TEST_F(HttpBrokerTest, AnOrderOfADeadWorkerWaitsForItsAdapterHoweverLong) {
  accept("dead-worker-key");
  run("SET orders.actor = 'test'; INSERT INTO orders.workers (worker, adapter, seen_at)"
      " VALUES ('dead', 'http', now() - interval '3 days'), ('idle', 'http', now() - interval '3 days');"
      "UPDATE orders.outbox_orders SET status = 'sending', locked_by = 'dead', claim_no = 1,"
      " locked_at = now() - interval '3 days'; RESET orders.actor");
  const auto paper = node();
  await("SELECT count(*) FROM orders.workers WHERE worker = 'idle'", "0");
  wait_until("health", [&] {
    return paper->health().find("wait for a worker of the adapter http") != std::string::npos;
  });
  EXPECT_EQ(of("dead-worker-key", "concat_ws(',', status, claim_no)"), "sending,1");
  const auto running = worker();
  await_status("dead-worker-key", "succeeded");
  EXPECT_EQ(broker.executions("dead-worker-key"), 1);
}

TEST_F(HttpBrokerTest, ARowThatAnOperatorHasLockedHoldsUpNoOtherAndIsSentOnce) {
  constexpr int kOrders = 8;
  broker.next({Mood::waiting});
  const auto running = worker(false, {"OUTBOX_LOCK_LEASE_SEC=3", "BROKER_TIMEOUT_MS=2000"});
  accept("locked-key");
  await_status("locked-key", "sending");
  SqlSession psql(test_database.url());
  psql.run("BEGIN; SELECT 1 FROM orders.outbox_orders WHERE idempotency_key = 'locked-key' FOR UPDATE");
  broker.let_go();
  for (int i = 1; i < kOrders; ++i) accept(fmt::format("free-key-{}", i));
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", std::to_string(kOrders - 1));
  EXPECT_EQ(of("locked-key", "status"), "sending");
  running->process().wait_for_output("a row is locked by somebody else");
  // Its lease has lapsed by now; nobody else can have the row, so its worker settles it.
  await("SELECT locked_at < now() - interval '3 s' FROM orders.outbox_orders WHERE status = 'sending'", "t");
  accept("free-key-last");
  await_status("free-key-last", "succeeded");
  psql.run("COMMIT");
  await_status("locked-key", "succeeded");
  EXPECT_EQ(of("locked-key", "concat_ws(',', claim_no, attempts)"), "1,0");
  EXPECT_EQ(broker.requests().size(), kOrders + 1U);
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends WHERE outcome = 'ok' AND NOT fenced"),
            std::to_string(kOrders + 1));
}

TEST_F(HttpBrokerTest, ALedgerRowThatAnOperatorHasLockedHoldsUpNoOtherOrder) {
  broker.next({Mood::waiting});
  const auto running = worker(false, kPatient);
  accept("locked-key");
  await_status("locked-key", "sending");
  SqlSession psql(test_database.url());
  psql.run("BEGIN; SELECT 1 FROM orders.idempo_ledger WHERE idempotency_key = 'locked-key' FOR UPDATE");
  broker.let_go();
  accept("free-key-1");
  accept("free-key-2");
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "2");
  psql.run("COMMIT");
  await_status("locked-key", "succeeded");
  EXPECT_EQ(broker.requests().size(), 3U);
}

TEST_F(HttpBrokerTest, WithOneAttemptAndNobodyToAskNothingIsSentTwiceThoughTheBreakerOpens) {
  constexpr int kOrders = 9;
  broker.next(std::deque<Mood>(kOrders, Mood::silent));
  const auto running = worker(false, {"OUTBOX_MAX_ATTEMPTS=1", "OUTBOX_CONCURRENCY=16"});
  for (int i = 0; i < kOrders; ++i) accept(fmt::format("once-key-{}", i));
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'aborted' AND in_doubt",
        std::to_string(kOrders));
  EXPECT_EQ(running->metric("outbox_breaker_state{adapter=\"http\"}") > 0, true);
  EXPECT_EQ(broker.requests().size(), static_cast<std::size_t>(kOrders));
}

TEST_F(HttpBrokerTest, AnOrderInDoubtWaitsForTheAdapterThatHasTriedIt) {
  broker.next({Mood::silent});
  const auto first = worker(true, {"OUTBOX_BACKOFF_SEC=[3]"});
  accept("doubt-key");
  await("SELECT concat_ws(',', status, in_doubt, adapter) FROM orders.outbox_orders", "failed,t,http");
  first->stop();
  const auto paper = node();
  await_status("doubt-key", "pending");
  wait_until("health", [&] {
    return paper->health().find("wait for a worker of the adapter http") != std::string::npos;
  });
  accept("other-key");
  await_status("other-key", "succeeded");
  EXPECT_EQ(of("doubt-key", "status"), "pending");
  const auto second = worker();
  await_status("doubt-key", "succeeded");
  EXPECT_EQ(broker.executions("doubt-key"), 1);
  EXPECT_EQ(value("SELECT string_agg(broker_id, ',') FROM orders.paper_book"), "other-key");
}

TEST_F(HttpBrokerTest, WhatMayPassIsTriedAgainAndWhatIsFinalIsNot) {
  broker.next({Mood::busy, Mood::locked, Mood::broken, Mood::refusing});
  const auto running = worker();
  accept("http-0004");
  await_status("http-0004", "aborted");
  EXPECT_EQ(journal(), "BROKER_DOWN,BROKER_DOWN,INTERNAL_ERROR,BROKER_REJECTED");
  EXPECT_EQ(ledger("http-0004", "concat_ws(',', status, http_status)"), "failed,409");
  EXPECT_EQ(of("http-0004", "last_error_msg"), "the broker answered 422: no margin");
}

TEST_F(HttpBrokerTest, ABrokerThatAsksForAPauseGetsIt) {
  broker.next({Mood::busy});
  const auto running = worker();
  accept("http-0005");
  await_status("http-0005", "succeeded");
  EXPECT_EQ(value("SELECT max(ended_at) - min(began_at) >= '1 s' FROM orders.sends"), "t");
}

TEST_F(HttpBrokerTest, ABrokerBehindTlsIsBelievedByItsAuthorityOnly) {
  const net::test::TestCertificate certificate;
  HttpBroker secure(&certificate);
  Environment settings{"TODOKE_BROKER_ADAPTER=http", "TODOKE_ORDERS_HTTP_URL=" + secure.url("/orders")};
  settings.emplace_back("OUTBOX_BACKOFF_SEC=3600");
  accept("tls-0001");
  auto running = node(settings);
  await_status("tls-0001", "failed");
  EXPECT_EQ(of("tls-0001", "concat_ws(',', last_error_code, in_doubt)"), "BROKER_DOWN,f");
  running->stop();
  EXPECT_EQ(secure.executions("tls-0001"), 0);

  settings.push_back("TODOKE_ORDERS_HTTP_CA_FILE=" + certificate.cert());
  running = node(settings);
  EXPECT_EQ(todoke_on(test_database, {"orders", "requeue", "tls-0001"}).code, 0);
  await_status("tls-0001", "succeeded");
  EXPECT_EQ(secure.executions("tls-0001"), 1);
}

TEST_F(HttpBrokerTest, AReferenceThatIsCutLeavesNoHalfOfACharacter) {
  broker.next({Mood::wordy});
  const auto running = worker();
  accept("http-0006");
  await_status("http-0006", "succeeded");
  EXPECT_EQ(value("SELECT char_length(broker_ref) FROM orders.sends"), "86");
}

TEST_F(HttpBrokerTest, SettingsThatCantWorkAreRefusedAtTheStart) {
  const auto refused = [this](const Environment& more) {
    Environment all = more;
    all.emplace_back("TODOKE_BROKER_ADAPTER=http");
    OrderNode wrong(test_database, all);
    const auto exit = wrong.process().wait();
    EXPECT_NE(exit.code, 0);
    return exit.err;
  };
  EXPECT_THAT(refused({}), HasSubstr("orders.http.url"));
  const auto url = "TODOKE_ORDERS_HTTP_URL=" + broker.url("/orders");
  EXPECT_THAT(refused({url, "TODOKE_ORDERS_HTTP_FIND_URL=" + broker.url("/orders")}), HasSubstr("{key}"));
  EXPECT_THAT(refused({url, "TODOKE_ORDERS_HTTP_TOKEN_FILE=" + (folder.path() / "none").string()}),
              HasSubstr("can't be read"));
}

}  // namespace
}  // namespace todoke::test
