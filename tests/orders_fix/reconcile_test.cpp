// `todoke orders reconcile --adapter fix` beside workers as processes: it reads what the broker has told the
// one that has the session.
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
  // The next logon: the owner asks about what is in doubt or works.
  void log_on_anew(OrderNode& node) {
    broker.stop();
    node.wait_for_metric("orders_fix_session_state", 1);
    broker.start();
    node.wait_for_metric("orders_fix_session_state", 2);
  }
};

TEST_F(FixReconcileTest, BooksThatAgreeEndWithZero) {
  broker.answer_orders([](const FixMessage& order) {
    if (order.at(11) == "refused-1") return FixAnswer{{reject(order, "3")}, false};
    return whole(order);
  });
  const auto one = node(environment());
  settled("agreed-1");
  settled("agreed-2");
  settled("refused-1", "aborted");
  const auto compared = reconcile();
  EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
  EXPECT_EQ(compared.out, "3 orders, 0 not settled yet, 3 compared with the broker, 0 with differences\n");
  EXPECT_THAT(broker.got("H"), SizeIs(0));
}

TEST_F(FixReconcileTest, AnOrderInDoubtIsNamedUntilTheBrokerWasAskedAndIsSettledThen) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  const auto one = node(environment({"BROKER_TIMEOUT_MS=1000", "OUTBOX_MAX_ATTEMPTS=1"}));
  settled("executed-1", "aborted");
  const auto before = reconcile();
  EXPECT_EQ(before.code, 1);
  EXPECT_THAT(before.out,
              ContainsRegex("order [0-9]+ \\([0-9a-f]{12}\\): what the broker has is not known: it has "
                            "said nothing of the order"));
  EXPECT_THAT(before.out, Not(HasSubstr("executed-1")));
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "2", "2", "10.5")}, false}; });
  log_on_anew(*one);
  await_status("executed-1", "succeeded");
  EXPECT_EQ(result("executed-1", "{executed_qty}"), "2");
  EXPECT_EQ(reconcile().code, 0);
}

TEST_F(FixReconcileTest, AFillThatTheBrokerDoesNotHaveIsNamed) {
  broker.answer_orders([](const FixMessage& order) {
    return FixAnswer{{acknowledge(order), fill(order, "L-" + order.at(11), "0.5", "10", "0.5", "10")}, false};
  });
  broker.answer_requests([](const FixMessage& request) {
    const bool is_gone = request.at(11) == "only-here-1";
    return FixAnswer{{is_gone ? unknown_order(request) : status(request, "1", "0.25", "10")}, false};
  });
  const auto one = node(environment());
  for (const auto* key : {"more-here-1", "only-here-1"}) {
    accept(key, "BTC-USD", "GTC");
    await_status(key, "succeeded");
  }
  log_on_anew(*one);
  await("SELECT count(*) FROM orders.fix_reports WHERE exec_type = 'I'", "2");
  const auto compared = reconcile();
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.out, HasSubstr("the ledger has executed_qty 0.5, the broker 0.25"));
  EXPECT_THAT(compared.out, HasSubstr("here it succeeded; the broker does not have it"));
  EXPECT_THAT(compared.out, HasSubstr("2 compared with the broker, 2 with differences"));
}

TEST_F(FixReconcileTest, WithoutAnOwnerOfTheSessionOrdersThatWorkAreNotCompared) {
  broker.answer_orders([](const FixMessage& order) {
    return order.at(11) == "working-1" ? FixAnswer{{acknowledge(order)}, false} : whole(order);
  });
  auto one = node(environment());
  settled("is-over-1");
  accept("working-1", "BTC-USD", "GTC");
  await_status("working-1", "succeeded");
  one->stop();
  const auto compared = reconcile();
  EXPECT_EQ(compared.code, 1);
  EXPECT_THAT(compared.out,
              testing::StartsWith("no worker has the FIX session TODOKE->BROKER: nobody asks the "
                                  "broker about its orders that are in doubt or work\n"));
  EXPECT_THAT(compared.out, HasSubstr("2 orders, 0 not settled yet, 1 compared with the broker, 0 with "
                                      "differences, 1 not compared with the broker"));
}

TEST_F(FixReconcileTest, TheNextOwnerAsksAboutWhatTheLastOneLeftInDoubt) {
  broker.answer_orders([](const FixMessage&) { return FixAnswer{}; });
  broker.answer_requests([](const FixMessage&) { return FixAnswer{}; });
  const Environment one_try{"BROKER_TIMEOUT_MS=1000", "OUTBOX_MAX_ATTEMPTS=1"};
  const auto one = node(environment(one_try));
  settled("left-over-1", "aborted");
  const auto two = node(environment(one_try));
  two->wait_for_metric("orders_fix_session_state", 0);
  broker.answer_requests(
      [](const FixMessage& request) { return FixAnswer{{status(request, "2", "2", "10.5")}, false}; });
  one->process().kill(SIGKILL);
  one->process().wait();
  await_status("left-over-1", "succeeded");
  EXPECT_EQ(two->metric("orders_fix_questions_total{answer=\"found\"}"), 1);
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
