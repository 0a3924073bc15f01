// Workers as processes, with a broker that speaks FIX.
#include <csignal>

#include <fmt/format.h>

#include "node_rig.hpp"

namespace todoke::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Posts a limit order; the amounts stand in the body as they are written here.
void post_order(OrderNode& node, std::string_view key, std::string_view qty, std::string_view price) {
  const auto posted = run_command(
      {"curl", "-s", "-H", "Content-Type: application/json", "-H", fmt::format("Idempotency-Key: {}", key),
       "-d",
       fmt::format(
           R"({{"instrument": "BTC-USD", "side": "BUY", "qty": {}, "price": {}, "time_in_force": "GTC",)"
           R"( "idempotency_key": "{}"}})",
           qty, price, key),
       node.public_url() + "/do/order"});
  ASSERT_THAT(posted.out, HasSubstr("pending"));
}

TEST_F(FixNodeTest, AnOrderIsFilledAndSettled) {
  const auto one = node(environment());
  accept("fix-order-1");
  await_status("fix-order-1", "succeeded");
  EXPECT_EQ(result("fix-order-1", "{executed_qty}"), "2");
  EXPECT_EQ(result("fix-order-1", "{broker,name}"), "fix");
  EXPECT_EQ(value("SELECT broker_id FROM orders.sends"), "fix-order-1");
  EXPECT_EQ(one->stop().code, 0);
  EXPECT_EQ(value("SELECT owner IS NULL FROM orders.fix_sessions"), "t");
}

TEST_F(FixNodeTest, AKeyThatDoesNotFitGoesAsItsHash) {
  const auto one = node(environment());
  accept("order/2025:08_24");
  await_status("order/2025:08_24", "succeeded");
  EXPECT_THAT(broker.executed(), ElementsAre("7Q6OIPPHPTN5P5KCCUJ5"));
}

TEST_F(FixNodeTest, TheBrokerExecutesAndItsAnswerIsLostThenTheOrderIsExecutedOnce) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "2", "2", "10.5")}, false}; });
  const auto one = node(environment({"BROKER_TIMEOUT_MS=500"}));
  accept("lost-answer-1");
  await_status("lost-answer-1", "succeeded");
  EXPECT_EQ(result("lost-answer-1", "{executed_qty}"), "2");
  EXPECT_EQ(broker.got("D").size(), 1U);
}

TEST_F(FixNodeTest, AnOrderThatTheBrokerNeverGotIsRepeatedUnderTheSameIdAndMarked) {
  int orders = 0;
  broker.answer_orders([&orders](const FixMessage& order) {
    // The first one is lost on the way.
    return ++orders == 1 ? FixAnswer{} : whole(order);
  });
  const auto one = node(environment({"BROKER_TIMEOUT_MS=500"}));
  accept("fix-repeat-1");
  await_status("fix-repeat-1", "succeeded");
  const auto got = broker.got("D");
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].at(11), got[1].at(11));
  EXPECT_FALSE(got[0].poss_resend);
  EXPECT_TRUE(got[1].poss_resend);
  EXPECT_FALSE(got[1].poss_dup);
}

TEST_F(FixNodeTest, ADuplicateOfAnOrderInDoubtMeansThatTheBrokerHasIt) {
  int orders = 0;
  int requests = 0;
  broker.answer_orders([&orders](const FixMessage& order) {
    return ++orders == 1 ? FixAnswer{} : FixAnswer{{reject(order, "6")}, false};
  });
  // The broker's books are behind when it is asked first.
  broker.answer_requests([&requests](const FixMessage& request) {
    return ++requests == 1 ? FixAnswer{{unknown_order(request)}, false}
                           : FixAnswer{{status(request, "2", "2", "10.5")}, false};
  });
  const auto one = node(environment({"BROKER_TIMEOUT_MS=500"}));
  accept("duplicate-1");
  await_status("duplicate-1", "succeeded");
  EXPECT_EQ(result("duplicate-1", "{executed_qty}"), "2");
}

TEST_F(FixNodeTest, ARejectedOrderIsAborted) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{reject(order, "3")}, false}; });
  const auto one = node(environment());
  accept("rejected-1");
  await_status("rejected-1", "aborted");
  EXPECT_EQ(of("rejected-1", "last_error_code"), "BROKER_REJECTED");
  EXPECT_EQ(ledger("rejected-1", "status"), "failed");
}

TEST_F(FixNodeTest, ALateReportSettlesAnOrderThatWaitsForItsNextTry) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  const auto one = node(environment({"BROKER_TIMEOUT_MS=500", "OUTBOX_BACKOFF_SEC=[3600]"}));
  accept("late-report-1");
  await_status("late-report-1", "failed");
  EXPECT_EQ(of("late-report-1", "in_doubt"), "t");
  for (const auto& message : whole(broker.got("D").at(0)).messages) broker.send(message);
  await_status("late-report-1", "succeeded");
  EXPECT_EQ(result("late-report-1", "{executed_qty}"), "2");
  EXPECT_EQ(broker.got("D").size(), 1U);
}

TEST_F(FixNodeTest, LaterFillsAreShownByGet) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{acknowledge(order)}, false}; });
  const auto one = node(environment());
  post_order(*one, "shown-by-get-1", "2", "10.5");
  await_status("shown-by-get-1", "succeeded");
  broker.send(fill(broker.got("D").at(0), "G1", "0.5", "10.25", "0.5", "10.25"));
  wait_until("the fill in the answer", [&] {
    return http_get(one->public_url() + "/do/order/shown-by-get-1").body.find("10.25") != std::string::npos;
  });
  EXPECT_THAT(http_get(one->public_url() + "/do/order/shown-by-get-1").body, HasSubstr("WORKING"));
}

TEST_F(FixNodeTest, AmountsGoFromTheBodyToTheWireAndToTheLedgerDigitForDigit) {
  const auto one = node(environment());
  // A double would have 0.1 and 64250.123456789.
  post_order(*one, "digits-1", "0.100000000000000001", "64250.123456789012345678");
  await_status("digits-1", "succeeded");
  EXPECT_EQ(broker.got("D").at(0).at(38), "0.100000000000000001");
  EXPECT_EQ(broker.got("D").at(0).at(44), "64250.123456789012345678");
  // An order that may rest is settled when the broker has it; the fill may come after.
  wait_until("the fill", [&] { return result("digits-1", "{executed_qty}") != "0"; });
  EXPECT_EQ(result("digits-1", "{executed_qty}"), "0.100000000000000001");
  EXPECT_EQ(result("digits-1", "{fills,0,px}"), "64250.123456789012345678");
}

TEST_F(FixNodeTest, AnotherWorkerTakesTheSessionOfOneThatWasKilledAndGoesOnWithItsNumbers) {
  auto one = node(environment());
  accept("before-1");
  await_status("before-1", "succeeded");
  const auto two = node(environment());
  two->wait_for_metric("orders_fix_session_state", 0);

  // Killed while the broker has an order that it has not answered.
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  accept("during-1");
  wait_until("the order to be at the broker", [&] { return broker.got("D").size() == 2; });
  one->process().kill(SIGKILL);
  one->process().wait();
  wait_until("the broker to notice", [&] { return !broker.is_logged_on(); });
  broker.answer_orders(whole);
  // Its report waits in the broker's session for the next that logs on.
  for (const auto& message : whole(broker.got("D").at(1)).messages) broker.lose(message);

  await_status("during-1", "succeeded");
  EXPECT_EQ(result("during-1", "{executed_qty}"), "2");
  accept("fix-after-1");
  await_status("fix-after-1", "succeeded");
  EXPECT_THAT(broker.executed(), ElementsAre("before-1", "during-1", "fix-after-1"));
  EXPECT_EQ(broker.got("D").size(), 3U);
  EXPECT_EQ(value("SELECT epoch FROM orders.fix_sessions"), "2");
  EXPECT_THAT(value("SELECT owner FROM orders.fix_sessions"), testing::StartsWith(two->worker()));
}

TEST_F(FixNodeTest, WhatTheBrokerAnswersIsNotTakenBackByTheReportsThatCameBefore) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{acknowledge(order)}, false}; });
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "2", "2", "10.5")}, false}; });
  const auto patient = environment({"BROKER_TIMEOUT_MS=4000", "OUTBOX_LOCK_LEASE_SEC=6"});
  auto one = node(patient);
  accept("filled-unseen-1");
  await("SELECT coalesce(sum(reports_stored), 0) FROM orders.fix_orders", "1");
  one->process().kill(SIGKILL);
  one->process().wait();
  const auto two = node(patient);
  await_status("filled-unseen-1", "succeeded");
  await("SELECT count(*) FROM orders.fix_orders WHERE reports_stored > reports_applied", "0");
  EXPECT_EQ(result("filled-unseen-1", "{executed_qty}"), "2");
  EXPECT_EQ(result("filled-unseen-1", "{avg_price}"), "10.5");
  EXPECT_EQ(broker.got("D").size(), 1U);
}

TEST_F(FixNodeTest, AStoppedOwnerThatWakesAfterItsLeaseSendsNothing) {
  // The broker keeps the stopped owner's connection until it wakes: tries of the other one fail meanwhile.
  const Environment patient{"OUTBOX_BACKOFF_SEC=[1]", "OUTBOX_MAX_ATTEMPTS=1000"};
  const auto one = node(environment(patient));
  accept("fix-awake-1");
  await_status("fix-awake-1", "succeeded");
  const auto two = node(environment(patient));
  one->process().kill(SIGSTOP);
  await("SELECT epoch FROM orders.fix_sessions", "2");
  accept("fix-asleep-1");
  one->process().kill(SIGCONT);
  await_status("fix-asleep-1", "succeeded");
  EXPECT_THAT(broker.executed(), ElementsAre("fix-awake-1", "fix-asleep-1"));
  EXPECT_EQ(broker.got("D").size(), 2U);
}

TEST_F(FixNodeTest, ABrokerThatIsAwayForAWhileCostsNoOrder) {
  const auto one = node(environment());
  one->wait_for_metric("orders_fix_session_state", 2);
  broker.stop();
  one->wait_for_metric("orders_fix_session_state", 1);
  EXPECT_THAT(one->health(), HasSubstr("not logged on"));
  for (int i = 0; i < 10; ++i) accept(fmt::format("fix-away-{}", i));
  broker.start();
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", "10");
  EXPECT_EQ(broker.got("D").size(), 10U);
  EXPECT_EQ(value("SELECT sum(attempts) FROM orders.outbox_orders"), "0");
  EXPECT_EQ(value("SELECT count(*) FROM orders.sends"), "10");
}

TEST_F(FixNodeTest, SettingsThatAreMissingAreNamedAtTheStart) {
  OrderNode refused(test_database, {"TODOKE_BROKER_ADAPTER=fix", "TODOKE_ORDERS_FIX_HOST=127.0.0.1"});
  const auto exit = refused.process().wait();
  EXPECT_NE(exit.code, 0);
  EXPECT_THAT(exit.err, HasSubstr("orders.fix.sender_comp_id is not set"));
}

TEST_F(FixNodeTest, NoContentOfAnOrderIsInTheLog) {
  const auto one = node(environment({"TODOKE_LOG_LEVEL=debug", "TODOKE_ORDERS_FIX_USERNAME=trader",
                                     "TODOKE_ORDERS_FIX_PASSWORD=s3cret-word"}));
  // A price that no time or port in the log can look like.
  post_order(*one, "private-key-1", "2", "64250.123456789");
  await_status("private-key-1", "succeeded");
  EXPECT_EQ(broker.last_logon_password(), "s3cret-word");
  const auto log = one->stop().err;
  for (const auto* secret : {"private-key-1", "BTC-USD", "64250.123456789", "s3cret-word"}) {
    EXPECT_EQ(log.find(secret), std::string::npos) << secret;
  }
}

}  // namespace
}  // namespace todoke::test
