// `todoke orders reconcile --adapter fix` beside workers as processes: the broker is asked through the one
// that has the session.
#include <csignal>

#include <fmt/format.h>

#include "node_rig.hpp"

namespace todoke::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class FixReconcileTest : public FixNodeTest {
 protected:
  [[nodiscard]] std::vector<std::string> command() const {
    return {todoke_binary(), "orders", "reconcile", "--adapter", "fix", "--since", "2020-01-01T00:00:00Z"};
  }
  [[nodiscard]] Environment command_environment() const { return {"DATABASE_URL=" + test_database.url()}; }
  [[nodiscard]] Exit reconcile() const { return run_command(command(), command_environment()); }
  void settled(const std::string& key, const std::string& status = "succeeded") {
    accept(key);
    await_status(key, status);
  }
  // Nothing is left behind for others.
  void TearDown() override {
    EXPECT_EQ(value("SELECT count(*) FROM orders.fix_questions"), "0");
    FixNodeTest::TearDown();
  }
};

TEST_F(FixReconcileTest, BooksThatAgreeEndWithZeroAndTheBrokerWasAskedForEach) {
  broker.answer_orders([](const FixMessage& order) {
    if (order.at(11) == "refused-1") return FixAnswer{{reject(order, "3")}, false};
    return whole(order);
  });
  const auto one = node(environment());
  settled("agreed-1");
  settled("agreed-2");
  settled("refused-1", "aborted");
  EXPECT_EQ(one->metric("orders_fix_questions_total{answer=\"found\"}"), 0);
  const auto compared = reconcile();
  EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
  EXPECT_EQ(compared.out, "3 orders, 0 not settled yet, 3 asked at the broker, 0 with differences\n");
  EXPECT_THAT(broker.got("H"), SizeIs(3));
  EXPECT_EQ(one->metric("orders_fix_questions_total{answer=\"found\"}"), 2);
  EXPECT_EQ(one->metric("orders_fix_questions_total{answer=\"not_found\"}"), 1);
}

TEST_F(FixReconcileTest, AnOrderThatTheBrokerHasAndThatIsAbortedHereIsNamed) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  const auto one = node(environment({"BROKER_TIMEOUT_MS=300", "OUTBOX_MAX_ATTEMPTS=1"}));
  settled("executed-1", "aborted");
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "2", "2", "10.5")}, false}; });
  const auto compared = reconcile();
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(
      compared.out,
      ContainsRegex("order [0-9]+ \\([0-9a-f]{12}\\): the broker has it, executed 2; here it is aborted"));
  EXPECT_THAT(compared.out,
              HasSubstr("1 orders, 0 not settled yet, 1 asked at the broker, 1 with differences"));
  EXPECT_THAT(compared.out, Not(HasSubstr("executed-1")));
}

TEST_F(FixReconcileTest, AFillThatTheBrokerDoesNotHaveIsNamed) {
  const auto one = node(environment());
  settled("more-here-1");
  settled("only-here-1");
  // The reports of both are stored: what the broker says now is what counts.
  broker.answer_requests([](const FixMessage& request) {
    return FixAnswer{
        {request.at(11) == "only-here-1" ? unknown_order(request) : status(request, "4", "0.5", "10.5")},
        false};
  });
  const auto compared = reconcile();
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.out, HasSubstr("the ledger has executed_qty 2, the broker 0.5"));
  EXPECT_THAT(compared.out, HasSubstr("here it succeeded; the broker does not have it"));
  EXPECT_THAT(compared.out, HasSubstr("2 asked at the broker, 2 with differences"));
}

TEST_F(FixReconcileTest, AFillThatComesWhileTheBooksAreComparedIsNoDifference) {
  broker.answer_orders([](const FixMessage& order) { return FixAnswer{{acknowledge(order)}, false}; });
  const auto one = node(environment({"BROKER_TIMEOUT_MS=500"}));
  settled("filling-1");
  const auto sent = broker.got("D").at(0);
  broker.answer_requests([sent](const FixMessage& request) {
    return FixAnswer{{fill(sent, "M1", "1.5", "10.5", "1.5", "10.5"), status(request, "1", "1.5", "10.5")},
                     false};
  });
  const auto compared = reconcile();
  EXPECT_EQ(compared.code, 0) << compared.out;
  EXPECT_EQ(result("filling-1", "{executed_qty}"), "1.5");
}

TEST_F(FixReconcileTest, WithoutAnOwnerOfTheSessionItSaysSoAndComparesTheRest) {
  auto one = node(environment());
  settled("ownerless-1");
  settled("ownerless-2");
  one->stop();
  accept("by-sql-1");
  run("UPDATE orders.outbox_orders SET status = 'succeeded' WHERE idempotency_key = 'by-sql-1';"
      "UPDATE orders.idempo_ledger SET status = 'succeeded' WHERE idempotency_key = 'by-sql-1'");
  const auto compared = reconcile();
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.out,
              testing::StartsWith("no worker has the FIX session TODOKE->BROKER: the broker can't be "
                                  "asked about its orders\norder "));
  EXPECT_THAT(compared.out, HasSubstr("it succeeded, but no try in the journal did"));
  EXPECT_THAT(compared.out,
              HasSubstr("3 orders, 0 not settled yet, 0 asked at the broker, 1 with differences, "
                        "2 not asked at the broker"));
  EXPECT_THAT(broker.got("H"), SizeIs(0));
}

TEST_F(FixReconcileTest, ABrokerThatDoesNotAnswerIsAskedAFewTimesAndHoldsUpNoOrder) {
  const auto one = node(environment({"BROKER_TIMEOUT_MS=1000"}));
  constexpr int kOrders = 30;
  for (int i = 0; i < kOrders; ++i) accept(fmt::format("silent-{}", i));
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", std::to_string(kOrders));
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  ChildProcess asking(command(), command_environment());
  wait_until("a question at the broker", [&] { return !broker.got("H").empty(); });
  // The questions under way wait for their time; an order does not.
  settled("beside-1");
  const auto compared = asking.wait();
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.out, HasSubstr("the broker could not be asked: no answer in time"));
  EXPECT_THAT(compared.out, HasSubstr("the broker could not be asked: it did not answer the last"));
  EXPECT_THAT(compared.out, HasSubstr("none of 30 questions on the FIX session TODOKE->BROKER was answered"));
  EXPECT_THAT(compared.out, HasSubstr("30 asked at the broker, 30 with differences"));
  // Eight in a row, and those that were under way then.
  EXPECT_LE(broker.got("H").size(), 11U);
  EXPECT_EQ(one->metric("orders_fix_questions_total{answer=\"unknown\"}"), kOrders);
}

TEST_F(FixReconcileTest, TheNextOwnerAnswersWhatTheLastOneLeft) {
  const Environment patient{"BROKER_TIMEOUT_MS=20000", "OUTBOX_LOCK_LEASE_SEC=30"};
  const auto one = node(environment(patient));
  settled("left-over-1");
  settled("left-over-2");
  const auto two = node(environment(patient));
  two->wait_for_metric("orders_fix_session_state", 0);
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  ChildProcess asking(command(), command_environment());
  wait_until("the questions at the broker", [&] { return broker.got("H").size() == 2; });
  one->process().kill(SIGKILL);
  one->process().wait();
  broker.answer_requests(nullptr);
  const auto compared = asking.wait();
  EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("2 asked at the broker, 0 with differences"));
  EXPECT_EQ(two->metric("orders_fix_questions_total{answer=\"found\"}"), 2);
}

TEST_F(FixReconcileTest, TwoCommandsAtOnceGetEachTheirOwnAnswers) {
  const auto one = node(environment({"TODOKE_ORDERS_FIX_QUESTIONS_PER_SEC=1000"}));
  constexpr int kOrders = 120;  // more than one command has waiting at a time
  for (int i = 0; i < kOrders; ++i) accept(fmt::format("for-both-{}", i));
  await("SELECT count(*) FROM orders.outbox_orders WHERE status = 'succeeded'", std::to_string(kOrders));
  ChildProcess first(command(), command_environment());
  ChildProcess second(command(), command_environment());
  for (auto* asking : {&first, &second}) {
    const auto compared = asking->wait();
    EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
    EXPECT_THAT(compared.out, HasSubstr("120 asked at the broker, 0 with differences"));
  }
}

TEST_F(FixReconcileTest, HelpSaysHowItEnds) {
  const auto help = run_command({todoke_binary(), "orders", "--help"});
  EXPECT_THAT(help.out, HasSubstr("reconcile compares outbox, ledger, journal and the broker's book"));
  EXPECT_THAT(help.out, HasSubstr("ends with 0 when all agree"));
  auto unknown = command();
  unknown[4] = "fax";
  EXPECT_EQ(run_command(unknown, command_environment()).code, 2);
}

}  // namespace
}  // namespace todoke::test
