// The owner of the session asks the broker by itself, and the book that a command reads has what it was told.
#include <fmt/format.h>

#include "harness/run_task.hpp"
#include "orders/brokers/fix/book.hpp"
#include "orders/core/exec_result.hpp"
#include "rig.hpp"

namespace todoke::test {
namespace {

using orders::ExecStatus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class WatchTest : public FixTest {
 protected:
  // An order that was sent and ended as the test says, with a try in the journal.
  orders::SendRequest sent(FixSide& side, const std::string& key, const std::string& outbox,
                           TimeInForce time_in_force = TimeInForce::ioc,
                           std::chrono::milliseconds limit = 10s) {
    const auto request = order(key, time_in_force);
    const auto outcome = side.send(request, limit);
    const bool is_ok = outcome.result.status == ExecStatus::ok;
    run(fmt::format(
        "SET orders.actor = 'worker';"
        "INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, broker_id, began_at, ended_at,"
        " outcome, worker) VALUES ({0}, 'h', 1, 'fix', '{1}', now(), now(), 'ok', 'test');"
        "UPDATE orders.idempo_ledger SET status = '{2}', response_payload_json = '{3}' WHERE idempotency_key "
        "= '{1}';"
        "UPDATE orders.outbox_orders SET {4} WHERE id = {0}",
        request.outbox_id, key, is_ok ? "succeeded" : "failed", orders::to_json(outcome.result), outbox));
    return request;
  }
  orders::SendRequest in_doubt(FixSide& side, const std::string& key,
                               std::chrono::milliseconds limit = kSilence) {
    return sent(side, key, "status = 'aborted', in_doubt = true", TimeInForce::ioc, limit);
  }
  // Every order's turn has come.
  void make_due() { run("UPDATE orders.fix_orders SET asked_at = now() - interval '1 hour'"); }

  orders::BrokerBook::Answers book(const std::vector<orders::SendRequest>& requests) {
    std::vector<orders::AskedOrder> asked;
    for (const auto& request : requests) {
      asked.push_back({request.outbox_id, request.idempotency_key, *request.order});
    }
    SystemClock clock;
    metrics::Registry registry;
    pg::PoolOptions options;
    options.connect.url = database.url();
    pg::Pool pool(options, clock, registry);
    auto answers = run_task([&]() -> Task<orders::BrokerBook::Answers> {
      orders::FixBook opened(pool);
      co_return co_await opened.ask(asked);
    });
    pool.close();
    return answers;
  }
  orders::FindOutcome book(const orders::SendRequest& request) {
    const std::vector<orders::SendRequest> one{request};
    return book(one).of.at(0).value();
  }
};

TEST_F(WatchTest, AnOrderInDoubtIsAskedAboutAfterTheNextLogonAndMadeDue) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "2", "2", "10.5")}, false}; });
  const auto one = side();
  one->await_logon();
  in_doubt(*one, "doubtful-1");
  EXPECT_THAT(broker.got("H"), IsEmpty());
  broker.stop();
  wait_until("logout", [&] { return one->metric("orders_fix_session_state") == 1; });
  broker.start();
  await("SELECT status FROM orders.outbox_orders", "pending");
  EXPECT_EQ(value("SELECT action FROM orders.audit WHERE actor = 'fix'"), "late report");
  EXPECT_THAT(broker.got("H"), SizeIs(1));
  EXPECT_EQ(one->metric("orders_fix_questions_total{answer=\"found\"}"), 1);
}

TEST_F(WatchTest, FillsThatWereNeverReportedAreFoundForAnOrderThatWorks) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{acknowledge(order)}, false}; });
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "1", "1.5", "10.5")}, false}; });
  const auto one = side();
  one->await_logon();
  const auto request = sent(*one, "working-1", "status = 'succeeded'", TimeInForce::gtc);
  make_due();
  await("SELECT response_payload_json ->> 'executed_qty' FROM orders.idempo_ledger", "1.5");
  EXPECT_EQ(book(request).result.executed_qty.text(), "1.5");
  // It is asked again, and what it says then takes the place of what it said before.
  broker.answer_requests(
      [](const FixMessage& asked) { return FixAnswer{{status(asked, "2", "2", "10.5")}, false}; });
  make_due();
  await("SELECT response_payload_json ->> 'executed_qty' FROM orders.idempo_ledger", "2");
  EXPECT_EQ(value("SELECT count(*) FROM orders.fix_reports WHERE exec_type = 'I'"), "1");
}

TEST_F(WatchTest, AnOrderThatIsOverIsAskedAboutNoMore) {
  const auto one = side();
  one->await_logon();
  sent(*one, "is-over-1", "status = 'succeeded'");
  make_due();
  await("SELECT is_watched FROM orders.fix_orders", "false");
  EXPECT_THAT(broker.got("H"), IsEmpty());
}

TEST_F(WatchTest, AnOrderThatIsBeingSentIsLeftToItsTry) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  const auto one = side();
  one->await_logon();
  one->send(order("sending-1"), kSilence);
  run("SET orders.actor = 'worker'; UPDATE orders.outbox_orders SET in_doubt = true");
  make_due();
  await("SELECT asked_at > now() - interval '1 minute' FROM orders.fix_orders", "true");
  EXPECT_EQ(value("SELECT is_watched FROM orders.fix_orders"), "true");
  EXPECT_THAT(broker.got("H"), IsEmpty());
}

TEST_F(WatchTest, ABrokerThatDoesNotAnswerIsLeftAlone) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  const auto one = side();
  one->await_logon();
  constexpr int kOrders = 20;
  for (int i = 0; i < kOrders; ++i) in_doubt(*one, fmt::format("silent-{}", i), 300ms);
  make_due();
  wait_until("silence", [&] { return one->metric("orders_fix_questions_total{answer=\"unknown\"}") >= 8; });
  make_due();
  // What it would ask next is never sent: an order is, and comes after whatever was on its way.
  one->send(order("beside-1"), 1s);
  EXPECT_LE(broker.got("H").size(), 11U);
}

TEST_F(WatchTest, AQuestionWithoutAnAnswerIsAskedAgainBeforeItsNextTurn) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  FixSide one(database, broker.port(), "host:1:aa", {}, {100ms, 1s});
  one.await_logon();
  in_doubt(one, "unheard-1");
  make_due();
  wait_until("silence", [&] { return one.metric("orders_fix_questions_total{answer=\"unknown\"}") >= 1; });
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "2", "2", "10.5")}, false}; });
  await("SELECT status FROM orders.outbox_orders", "pending");
  EXPECT_GE(broker.got("H").size(), 2U);
}

TEST_F(WatchTest, TheBookHasWhatTheBrokerSaidLast) {
  broker.answer_orders([](const FixMessage& order) {
    if (order.at(11) == "rejected-1") return FixAnswer{{reject(order, "3")}, false};
    if (order.at(11) == "filled-1") return whole(order);
    return FixAnswer{};
  });
  broker.answer_requests([](const FixMessage& request) {
    if (request.at(11) == "unseen-1") return FixAnswer{{unknown_order(request)}, false};
    FixMessage refused;
    refused.type = "j";
    refused.fields = {{45, std::to_string(request.number)}, {372, "H"}, {380, "1"}};
    return FixAnswer{{refused}, false};
  });
  const auto one = side();
  one->await_logon();
  const auto filled = sent(*one, "filled-1", "status = 'succeeded'");
  const auto rejected = sent(*one, "rejected-1", "status = 'aborted'");
  const auto never = in_doubt(*one, "unseen-1");
  const auto refused = in_doubt(*one, "refused-1");
  EXPECT_EQ(book(never).message, "it has said nothing of the order");
  make_due();
  await("SELECT count(*) FROM orders.fix_reports WHERE exec_type = 'I'", "2");
  const auto answers = book({filled, rejected, never, refused}).of;
  EXPECT_EQ(answers.at(0)->answer, FindAnswer::found);
  EXPECT_EQ(answers.at(0)->result.executed_qty.text(), "2");
  EXPECT_EQ(answers.at(1)->answer, FindAnswer::found);
  EXPECT_EQ(answers.at(1)->result.status, ExecStatus::error);
  EXPECT_EQ(answers.at(2)->answer, FindAnswer::not_found);
  EXPECT_EQ(answers.at(3)->answer, FindAnswer::not_found);
}

TEST_F(WatchTest, AnIdThatAnotherOrderHasGoneOutWithTellsNothing) {
  const auto one = side();
  one->await_logon();
  const auto request = sent(*one, "reused-1", "status = 'succeeded'");
  run("UPDATE orders.fix_orders SET outbox_id = outbox_id + 1000");
  EXPECT_EQ(book(request).message, "another order has gone out with its ClOrdID");
}

TEST_F(WatchTest, WithoutAnOwnerOnlyOrdersThatAreOverAreAnsweredFor) {
  broker.answer_orders(
      [](const FixMessage& order) { return order.at(11) == "filled-1" ? whole(order) : FixAnswer{}; });
  auto one = side();
  one->await_logon();
  const auto filled = sent(*one, "filled-1", "status = 'succeeded'");
  const auto doubtful = in_doubt(*one, "doubtful-1");
  one->stop();
  const auto answers = book({filled, doubtful});
  EXPECT_EQ(answers.of.at(0)->answer, FindAnswer::found);
  EXPECT_FALSE(answers.of.at(1));
  EXPECT_THAT(answers.notices, ElementsAre(HasSubstr("no worker has the FIX session TODOKE->BROKER")));
}

}  // namespace
}  // namespace todoke::test
