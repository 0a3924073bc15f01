// Both ends of a question to the broker: the command's book, and the worker that has the session.
#include <future>

#include <fmt/format.h>

#include "harness/run_task.hpp"
#include "orders/brokers/fix/book.hpp"
#include "rig.hpp"

namespace todoke::test {
namespace {

using orders::ExecStatus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class QuestionsTest : public FixTest {
 protected:
  // An order with a try in the journal.
  orders::SendRequest tried(const std::string& key) {
    const auto request = order(key);
    run(fmt::format(
        "INSERT INTO orders.sends (outbox_id, key_hash, claim_no, adapter, broker_id, began_at, ended_at,"
        " outcome, worker) VALUES ({}, 'h', 1, 'fix', '{}', now(), now(), 'ok', 'test')",
        request.outbox_id, key));
    return request;
  }
  orders::BrokerBook::Answers ask(const std::vector<orders::SendRequest>& requests) {
    std::vector<orders::AskedOrder> asked;
    for (const auto& request : requests) {
      asked.push_back({request.outbox_id, request.idempotency_key, *request.order});
    }
    pg::ConnectOptions connect;
    connect.url = database.url();
    return run_task([&]() -> Task<orders::BrokerBook::Answers> {
      orders::FixBook book(connect, 20s);
      co_return co_await book.ask(asked);
    });
  }
  orders::FindOutcome ask(const orders::SendRequest& request) {
    const std::vector<orders::SendRequest> one{request};
    return ask(one).of.at(0).value();
  }
};

TEST_F(QuestionsTest, WhatTheBrokerSaysComesBack) {
  const auto one = side();
  one->await_logon();
  const auto filled = tried("filled-1");
  const auto rejected = tried("rejected-1");
  const auto never = tried("never-there-1");
  one->send(filled);
  broker.answer_requests([](const FixMessage& request) {
    if (request.at(11) == "never-there-1") return FixAnswer{{unknown_order(request)}, false};
    if (request.at(11) == "rejected-1") return FixAnswer{{status(request, "8", "0", "0")}, false};
    return FixAnswer{{status(request, "1", "0.700000000000000001", "10.5")}, false};
  });
  const auto answers = ask({filled, rejected, never}).of;
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0]->answer, FindAnswer::found);
  EXPECT_EQ(answers[0]->result.status, ExecStatus::ok);
  EXPECT_EQ(answers[0]->result.executed_qty.text(), "0.700000000000000001");
  EXPECT_EQ(answers[1]->answer, FindAnswer::found);
  EXPECT_EQ(answers[1]->result.status, ExecStatus::error);
  EXPECT_EQ(answers[2]->answer, FindAnswer::not_found);
  EXPECT_EQ(value("SELECT count(*) FROM orders.fix_questions"), "0");
  EXPECT_EQ(one->metric("orders_fix_questions_total{answer=\"found\"}"), 2);
}

TEST_F(QuestionsTest, AnOrderOfTheArchiveIsAskedForAsWell) {
  const auto one = side();
  one->await_logon();
  const auto request = tried("archived-1");
  one->send(request);
  run("INSERT INTO orders.outbox_orders_archive (id, idempotency_key, order_request_json, request_digest, "
      "status,"
      " attempts, claim_no, in_doubt, created_at, updated_at) SELECT id, idempotency_key, order_request_json,"
      " request_digest, 'succeeded', attempts, claim_no, in_doubt, created_at, updated_at FROM "
      "orders.outbox_orders;"
      "SET orders.actor = 'worker'; DELETE FROM orders.outbox_orders");
  EXPECT_EQ(ask(request).answer, FindAnswer::found);
}

TEST_F(QuestionsTest, AnOrderThatIsBeingSentIsLeftAlone) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  const auto one = side();
  one->await_logon();
  const auto request = tried("under-way-1");
  auto sending = std::async(std::launch::async, [&] { return one->send(request, 30s); });
  wait_until("the order", [&] { return broker.got("D").size() == 1; });
  const auto answer = ask(request);
  EXPECT_EQ(answer.answer, FindAnswer::unknown);
  EXPECT_EQ(answer.message, "the order is being sent at this moment");
  EXPECT_THAT(broker.got("H"), IsEmpty());
  for (const auto& message : whole(broker.got("D").at(0)).messages) broker.send(message);
  EXPECT_EQ(sending.get().result.status, ExecStatus::ok);
}

TEST_F(QuestionsTest, TwoCommandsThatAskAboutOneOrderAtOnceGetTheSameAnswer) {
  const auto one = side();
  one->await_logon();
  const auto request = tried("for-both-1");
  one->send(request);
  run(
      fmt::format("INSERT INTO orders.fix_questions (session, cl_ord_id, outbox_id, asked_by)"
                  " SELECT 'TODOKE->BROKER', 'for-both-1', {}, 'run ' || i FROM generate_series(1, 2) i;"
                  "NOTIFY orders_questions",
                  request.outbox_id));
  await(
      "SELECT string_agg(answer || ' ' || executed_qty, ', ') FROM orders.fix_questions"
      " WHERE answered_at IS NOT NULL",
      "found 2, found 2");
  EXPECT_EQ(broker.got("H").size(), 1U);
  EXPECT_EQ(one->metric("orders_fix_questions_total{answer=\"found\"}"), 2);
}

TEST_F(QuestionsTest, AnIdThatAnotherOrderHasGoneOutWithIsNotAskedFor) {
  const auto one = side();
  one->await_logon();
  const auto request = tried("reused-1");
  one->send(request);
  run("UPDATE orders.fix_orders SET outbox_id = outbox_id + 1000");
  EXPECT_EQ(ask(request).message, "another order has gone out with its ClOrdID");
  EXPECT_THAT(broker.got("H"), IsEmpty());
}

TEST_F(QuestionsTest, AnOrderOfAnotherSessionIsNotAskedOnThisOne) {
  const auto one = side();
  one->await_logon();
  const auto request = tried("elsewhere-1");
  one->send(request);
  const auto unsent = tried("nowhere-1");
  run("INSERT INTO orders.fix_sessions (session) VALUES ('TODOKE->OLD');"
      "UPDATE orders.fix_orders SET session = 'TODOKE->OLD'");
  const auto answers = ask({request, unsent});
  EXPECT_FALSE(answers.of.at(0));
  EXPECT_THAT(answers.notices, ElementsAre(HasSubstr("no worker has the FIX session TODOKE->OLD")));
  EXPECT_EQ(answers.of.at(1)->message, "it is not written down which FIX session it belongs to");
  EXPECT_THAT(broker.got("H"), IsEmpty());
}

TEST_F(QuestionsTest, WhileTheSessionIsNotLoggedOnTheAnswerSaysSo) {
  const auto one = side();
  one->await_logon();
  const auto request = tried("logged-out-1");
  broker.stop();
  wait_until("logout", [&] { return one->metric("orders_fix_session_state") == 1; });
  EXPECT_EQ(ask(request).message, "the FIX session is not logged on");
}

TEST_F(QuestionsTest, MoreQuestionsThanTheTableMayHoldAreRefused) {
  const auto one = side();
  one->await_logon();
  const auto request = tried("too-many-1");
  run("INSERT INTO orders.fix_questions (session, cl_ord_id, outbox_id, asked_by)"
      " SELECT 'A->B', 'x', i, 'others' FROM generate_series(1, 1000) i");
  EXPECT_EQ(ask(request).message, "1000 questions wait already");
  EXPECT_EQ(value("SELECT count(*) FROM orders.fix_questions"), "1000");
}

TEST_F(QuestionsTest, WhatACommandLeftBehindIsSweptAndCounted) {
  const auto one = side();
  one->await_logon();
  EXPECT_EQ(one->metric("orders_fix_questions_total{answer=\"swept\"}"), 0);
  run("INSERT INTO orders.fix_questions (session, cl_ord_id, outbox_id, asked_by, asked_at)"
      " VALUES ('TODOKE->BROKER', 'x', 1, 'gone', now() - interval '11 minutes')");
  wait_until("sweeping", [&] { return one->metric("orders_fix_questions_total{answer=\"swept\"}") == 1; });
  EXPECT_EQ(value("SELECT count(*) FROM orders.fix_questions"), "0");
  EXPECT_THAT(broker.got("H"), IsEmpty());
}

}  // namespace
}  // namespace todoke::test
