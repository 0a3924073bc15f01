// The adapter over a session with a lease, against the broker and a database.
#include <future>
#include <mutex>

#include <fmt/format.h>

#include "base/log.hpp"
#include "harness/run_task.hpp"
#include "rig.hpp"

namespace todoke::test {
namespace {

using orders::ExecStatus;
using testing::ElementsAre;
using testing::IsEmpty;

using AdapterTest = FixTest;

std::string text(const orders::Decimal& number) {
  return number.text();
}

TEST_F(AdapterTest, AFilledOrderIsOkWithItsFill) {
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("filled-1"));
  EXPECT_EQ(outcome.result.status, ExecStatus::ok);
  EXPECT_EQ(outcome.result.broker.order_ref, "B-filled-1");
  ASSERT_EQ(outcome.result.fills.size(), 1U);
  EXPECT_EQ(text(outcome.result.fills[0].px), "10.5");
  EXPECT_EQ(text(outcome.result.executed_qty), "2");
  EXPECT_THAT(outcome.result.warnings, IsEmpty());
}

TEST_F(AdapterTest, FillsInPartsAddUpAndARepeatedExecIdCountsOnce) {
  broker.answer_orders([](const FixMessage& order) {
    return FixAnswer{
        {acknowledge(order), fill(order, "P1", "0.5", "10.25", "0.5", "10.25"),
         fill(order, "P1", "0.5", "10.25", "0.5", "10.25"), fill(order, "P2", "1.5", "10.5", "2", "10.4375")},
        false};
  });
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("parts-1"));
  ASSERT_EQ(outcome.result.fills.size(), 2U);
  EXPECT_EQ(text(outcome.result.executed_qty), "2");
  EXPECT_EQ(text(outcome.result.cost), "20.875");
  EXPECT_EQ(one->metric("orders_fix_reports_total{kind=\"repeated\"}"), 1);
}

TEST_F(AdapterTest, GtcIsOkWhenItIsAcknowledged) {
  broker.answer_orders(
      [](const FixMessage& order) { return FixAnswer{{pending_new(order), acknowledge(order)}, false}; });
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("gtc-1", TimeInForce::gtc));
  EXPECT_EQ(outcome.result.status, ExecStatus::ok);
  EXPECT_THAT(outcome.result.fills, IsEmpty());
  EXPECT_THAT(outcome.result.warnings, ElementsAre("WORKING"));
  EXPECT_EQ(broker.got("D").at(0).at(59), "1");
}

TEST_F(AdapterTest, IocThatEndsWithoutAFillIsOkAndUnfilled) {
  broker.answer_orders(
      [](const FixMessage& order) { return FixAnswer{{acknowledge(order), ended(order, "4", "0")}, false}; });
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("unfilled-1"));
  EXPECT_EQ(outcome.result.status, ExecStatus::ok);
  EXPECT_EQ(text(outcome.result.executed_qty), "0");
  EXPECT_THAT(outcome.result.warnings, ElementsAre("UNFILLED"));
}

TEST_F(AdapterTest, FokThatExpiresIsOkAndUnfilled) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{ended(order, "C", "0")}, false}; });
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("expired-1", TimeInForce::fok));
  EXPECT_EQ(outcome.result.status, ExecStatus::ok);
  EXPECT_THAT(outcome.result.warnings, ElementsAre("UNFILLED"));
  EXPECT_EQ(broker.got("D").at(0).at(59), "4");
}

TEST_F(AdapterTest, AnAcknowledgedIocWithoutAnEndIsOkAtTheDeadlineAndWorking) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{acknowledge(order)}, false}; });
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("open-1"), 1500ms);
  EXPECT_EQ(outcome.result.status, ExecStatus::ok);
  EXPECT_THAT(outcome.result.warnings, ElementsAre("WORKING"));
}

TEST_F(AdapterTest, ARejectionIsFinal) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{reject(order, "3")}, false}; });
  const auto one = side();
  one->await_logon();
  const auto outcome = one->send(order("rejected-1"));
  EXPECT_EQ(outcome.result.status, ExecStatus::error);
  EXPECT_EQ(outcome.result.reason_code, "BROKER_REJECTED");
  EXPECT_FALSE(outcome.in_doubt);
  EXPECT_FALSE(outcome.duplicate);
}

TEST_F(AdapterTest, ADuplicateIsToldAsSuch) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{reject(order, "6")}, false}; });
  const auto one = side();
  one->await_logon();
  auto request = order("twice-1");
  request.possible_resend = true;
  const auto outcome = one->send(request);
  EXPECT_TRUE(outcome.duplicate);
  EXPECT_FALSE(outcome.in_doubt);
  EXPECT_TRUE(broker.got("D").at(0).poss_resend);
}

TEST_F(AdapterTest, ABusinessRejectIsFinalUnlessTheBrokerIsOut) {
  broker.answer_orders([](const FixMessage& order) {
    FixMessage business;
    business.type = "j";
    business.fields = {
        {45, std::to_string(order.number)}, {372, "D"}, {380, order.at(11) == "out-1" ? "4" : "2"}};
    return FixAnswer{{business}, false};
  });
  const auto one = side();
  one->await_logon();
  EXPECT_EQ(one->send(order("out-1")).result.reason_code, "BROKER_DOWN");
  EXPECT_EQ(one->send(order("refused-1")).result.reason_code, "BROKER_REJECTED");
}

TEST_F(AdapterTest, NoAnswerIsATimeoutInDoubtAndFindTellsWhatBecameOfIt) {
  // Executed, and the answer is lost.
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "2", "2", "10.5")}, false}; });
  const auto one = side();
  one->await_logon();
  const auto request = order("lost-1");
  const auto outcome = one->send(request, kSilence);
  EXPECT_EQ(outcome.result.reason_code, "BROKER_TIMEOUT");
  EXPECT_TRUE(outcome.in_doubt);
  const auto found = one->find(request);
  EXPECT_EQ(found.answer, FindAnswer::found);
  EXPECT_EQ(found.result.status, ExecStatus::ok);
  EXPECT_EQ(text(found.result.executed_qty), "2");
  EXPECT_EQ(text(*found.result.avg_price), "10.5");
}

TEST_F(AdapterTest, AnUnknownOrderIsNotFound) {
  const auto one = side();
  one->await_logon();
  EXPECT_EQ(one->find(order("nobody-1")).answer, FindAnswer::not_found);
  broker.answer_requests([](const FixMessage& request) {
    FixMessage business;
    business.type = "j";
    business.fields = {{45, std::to_string(request.number)}, {372, "H"}, {380, "1"}};
    return FixAnswer{{business}, false};
  });
  EXPECT_EQ(one->find(order("nobody-2")).answer, FindAnswer::not_found);
}

TEST_F(AdapterTest, ABrokerThatDoesNotAnswerTheRequestSaysNothingAboutTheOrder) {
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  const auto one = side();
  one->await_logon();
  EXPECT_EQ(one->find(order("silent-1"), kSilence).answer, FindAnswer::unknown);
}

TEST_F(AdapterTest, AReportThatCameAfterTheTryIsFoundWithoutAskingTheBroker) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  const auto one = side();
  one->await_logon();
  const auto request = order("late-1");
  EXPECT_TRUE(one->send(request, kSilence).in_doubt);
  for (const auto& message : whole(broker.got("D").at(0)).messages) broker.send(message);
  await("SELECT count(*) FROM orders.fix_reports", "2");
  const auto found = one->find(request);
  EXPECT_EQ(found.answer, FindAnswer::found);
  EXPECT_EQ(text(found.result.executed_qty), "2");
  EXPECT_THAT(broker.got("H"), IsEmpty());
}

TEST_F(AdapterTest, WithoutASessionNothingIsTakenSentOrAskedHoweverLongItLasts) {
  broker.stop();
  const auto one =
      side("host:1:aa", [](orders::FixOptions& options) { options.lease = std::chrono::hours(1); });
  wait_until("the session", [&] { return one->metric("orders_fix_session_state") == 1; });
  EXPECT_FALSE(one->can_send_now());
  one->advance(10min);
  EXPECT_FALSE(one->can_send_now());
  const auto outcome = one->send(order("down-1"));
  EXPECT_TRUE(outcome.held_back);
  EXPECT_FALSE(outcome.in_doubt);
  const auto found = one->find(order("down-1"));
  EXPECT_EQ(found.answer, FindAnswer::unknown);
  EXPECT_FALSE(found.was_asked);
  EXPECT_THAT(one->health(), testing::StartsWith("degraded: not logged on to 127.0.0.1:"));
}

TEST_F(AdapterTest, WhatIsRefusedIsCountedAndLoggedWithoutContent) {
  std::mutex mutex;
  std::string logged;
  const log::Capture capture([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    logged += line;
  });
  broker.answer_orders([](const FixMessage& order) {
    auto odd = fill(order, "O1", "2", "10.5", "2", "10.5");
    odd.repeated = {{20001, "2"}, {20002, "secret-a"}, {20002, "secret-b"}};
    return FixAnswer{{odd}, false};
  });
  const auto one = side();
  one->await_logon();
  EXPECT_EQ(text(one->send(order("odd-1")).result.executed_qty), "2");
  EXPECT_EQ(one->metric("orders_fix_rejects_sent_total{kind=\"session\"}"), 1);
  EXPECT_EQ(one->metric("orders_fix_rejects_sent_total{kind=\"business\"}"), 0);
  log::flush();
  const std::lock_guard lock(mutex);
  EXPECT_THAT(logged, testing::HasSubstr("a message of the broker was refused"));
  EXPECT_THAT(logged, testing::HasSubstr("tag=20002"));
  EXPECT_THAT(logged, testing::Not(testing::HasSubstr("secret-")));
}

TEST_F(AdapterTest, NumbersThatTheBrokerForgotAreToldInHealth) {
  run("INSERT INTO orders.fix_sessions (session, next_in) VALUES ('TODOKE->BROKER', 1000)");
  const auto one = side();
  wait_until("the reason", [&] { return one->health().find("MsgSeqNum too low") != std::string::npos; });
}

TEST_F(AdapterTest, AReportOfAConnectionThatBrokeComesWithTheNextOne) {
  // The broker takes the order and the connection breaks before its report.
  broker.answer_orders([](const FixMessage&) { return FixAnswer{{}, true}; });
  const auto one = side();
  one->await_logon();
  const auto request = order("cut-1");
  auto sending = std::async(std::launch::async, [&] { return one->send(request, 20s); });
  wait_until("the order", [&] { return broker.got("D").size() == 1; });
  for (const auto& message : whole(broker.got("D").at(0)).messages) broker.send(message);
  const auto outcome = sending.get();
  EXPECT_EQ(outcome.result.status, ExecStatus::ok);
  EXPECT_EQ(broker.got("D").size(), 1U);
}

TEST_F(AdapterTest, AConnectionThatStaysBrokenLeavesTheOrderInDoubt) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{{}, true}; });
  const auto one =
      side("host:1:aa", [](orders::FixOptions& options) { options.session.reconnect_sec = 3600; });
  one->await_logon();
  const auto outcome = one->send(order("cut-2"), 1500ms);
  EXPECT_EQ(outcome.result.reason_code, "BROKER_DOWN");
  EXPECT_TRUE(outcome.in_doubt);
}

TEST_F(AdapterTest, AnOrderThatHadTheSameKeyBeforeIsNotTakenForThisOne) {
  const auto one = side();
  one->await_logon();
  auto request = order("reused-1");
  EXPECT_EQ(one->send(request).result.status, ExecStatus::ok);
  request.outbox_id += 1'000;
  broker.answer_requests([](const FixMessage& asked) { return FixAnswer{{unknown_order(asked)}, false}; });
  EXPECT_EQ(one->find(request).answer, FindAnswer::not_found);
  broker.answer_orders([](const FixMessage& again) {
    return FixAnswer{{acknowledge(again), fill(again, "N1", "2", "11", "2", "11")}, false};
  });
  const auto outcome = one->send(request);
  ASSERT_EQ(outcome.result.fills.size(), 1U);
  EXPECT_EQ(text(outcome.result.fills[0].px), "11");
  EXPECT_EQ(value(fmt::format("SELECT string_agg(exec_type || ' ' || cum_qty, ',' ORDER BY exec_type) FROM"
                              " orders.fix_reports_archive WHERE outbox_id = {}",
                              request.outbox_id - 1'000)),
            "0 0,F 2");
}

TEST_F(AdapterTest, OneSideHasTheSessionAndTheOtherTakesItWhenItStops) {
  auto one = side("host:1:aa");
  one->await_logon();
  const auto two = side("host:2:bb");
  wait_until("the other to know", [&] { return two->health() == "up: host:1:aa has the session"; });
  EXPECT_FALSE(two->can_send_now());
  EXPECT_TRUE(two->send(order("standby-1")).held_back);
  EXPECT_EQ(one->send(order("first-1")).result.status, ExecStatus::ok);
  one->stop();
  two->await_logon();
  EXPECT_EQ(two->send(order("second-1")).result.status, ExecStatus::ok);
  EXPECT_THAT(broker.executed(), ElementsAre("first-1", "second-1"));
  EXPECT_EQ(value("SELECT epoch FROM orders.fix_sessions"), "2");
  // Given up in good order: no gap was left for the broker to ask about.
  EXPECT_THAT(broker.got("4"), IsEmpty());
}

TEST_F(AdapterTest, AnOwnerWhoseSessionWasTakenSendsNothingMore) {
  const auto one = side("host:1:aa");
  one->await_logon();
  run("UPDATE orders.fix_sessions SET owner = 'host:2:bb', epoch = epoch + 1,"
      " leased_until = now() + interval '1 hour'");
  const auto outcome = one->send(order("fenced-1"));
  EXPECT_TRUE(outcome.held_back);
  EXPECT_FALSE(outcome.in_doubt);
  wait_until("it to let go", [&] { return one->health() == "up: host:2:bb has the session"; });
  EXPECT_THAT(broker.got("D"), IsEmpty());
  EXPECT_EQ(value("SELECT count(*) FROM orders.fix_orders"), "0");
}

TEST_F(AdapterTest, TheNumbersInTheDatabaseCoverWhatWasSentAndNoReportThatWasNotStored) {
  const auto one = side();
  one->await_logon();
  EXPECT_EQ(one->send(order("numbers-1")).result.status, ExecStatus::ok);
  const auto next_out = std::stoi(value("SELECT next_out FROM orders.fix_sessions"));
  EXPECT_GE(next_out, broker.expected_number());
  // Logon, Heartbeat, acknowledgement, fill.
  EXPECT_LE(std::stoi(value("SELECT next_in FROM orders.fix_sessions")), 5);
}

TEST_F(AdapterTest, ASessionThatIsTakenAgainBeforeItsFirstRoundHasOtherNumbers) {
  pg::ConnectOptions connect;
  connect.url = database.url();
  SystemClock clock;
  metrics::Registry registry;
  pg::PoolOptions pool_options;
  pool_options.connect = connect;
  pg::Pool pool(pool_options, clock, registry);
  run_task([&]() -> Task<void> {
    orders::FixStore store(connect, pool, "A->B", 1h);
    const auto first = co_await store.claim_session("host:1:aa", Deadline::after(30s));
    const auto while_owned = co_await store.claim_session("host:2:bb", Deadline::after(30s));
    EXPECT_FALSE(while_owned);
    database.execute("UPDATE orders.fix_sessions SET leased_until = now() - interval '1 second'");
    const auto second = co_await store.claim_session("host:2:bb", Deadline::after(30s));
    EXPECT_EQ(first->next_out, 1);
    EXPECT_EQ(second->next_out, 1 + orders::FixStore::kNumbersAhead);
    EXPECT_EQ(second->epoch, 2);
  });
}

TEST_F(AdapterTest, ManyOrdersAtOnceEachGetTheirOwnAnswer) {
  const auto one = side();
  one->await_logon();
  std::vector<orders::SendRequest> requests;
  for (int i = 0; i < 100; ++i) requests.push_back(order(fmt::format("many-{}", i)));
  std::vector<std::future<orders::SendOutcome>> outcomes;
  for (const auto& request : requests) {
    outcomes.push_back(std::async(std::launch::async, [&one, &request] { return one->send(request, 30s); }));
  }
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto outcome = outcomes[i].get();
    EXPECT_EQ(outcome.result.status, ExecStatus::ok);
    EXPECT_EQ(outcome.result.broker.order_ref, "B-" + requests[i].broker_id);
  }
  EXPECT_EQ(broker.executed().size(), requests.size());
}

}  // namespace
}  // namespace todoke::test
