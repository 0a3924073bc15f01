// What the worker relies on, of every adapter.
#include <boost/asio/this_coro.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "counterpart.hpp"
#include "harness/run_task.hpp"
#include "orders/core/order.hpp"

namespace todoke::test {
namespace {

using namespace std::chrono_literals;
using orders::BrokerAdapter;
using orders::Decimal;
using orders::ExecStatus;
using orders::FindAnswer;
using orders::Order;
using orders::SendRequest;

Decimal decimal(std::string_view text) {
  return *Decimal::parse(text);
}

Order order(const std::string& key) {
  Order made;
  made.idempotency_key = key;
  made.instrument = "BTC-USD";
  made.qty = decimal("0.1");
  made.price = decimal("0.3");
  return made;
}

class AdapterConformance : public testing::TestWithParam<CounterpartFactory> {
 protected:
  static SendRequest request(const BrokerAdapter& adapter, const Order& order, std::int64_t claim_no = 1) {
    SendRequest made;
    made.order = &order;
    made.idempotency_key = order.idempotency_key;
    made.broker_id = adapter.broker_id(order.idempotency_key);
    made.claim_no = claim_no;
    made.possible_resend = claim_no > 1;
    return made;
  }
  static Deadline soon() { return Deadline::after(30s); }
  // For what ends by its deadline.
  static Deadline short_while() { return Deadline::after(1s); }

  std::unique_ptr<Counterpart> broker = GetParam().make();
};

TEST_P(AdapterConformance, AnOrderIsTakenAndItsFillsAreExact) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto adapter = broker->adapter(executor, Behaviour::fills);
    const auto asked = order("fill-key");
    const auto request_1 = request(*adapter, asked);
    const auto outcome = co_await adapter->send(request_1, soon());
    EXPECT_EQ(outcome.result.status, ExecStatus::ok);
    EXPECT_EQ(outcome.result.executed_qty, decimal("0.1"));
    EXPECT_EQ(outcome.result.avg_price, decimal("0.3"));
    EXPECT_EQ(outcome.result.cost, decimal("0.03"));
    EXPECT_EQ(outcome.result.slippage, Decimal());
    EXPECT_EQ(outcome.result.broker.name, adapter->name());
    EXPECT_FALSE(outcome.result.broker.order_ref.empty());
    EXPECT_FALSE(outcome.in_doubt);
    EXPECT_EQ(co_await broker->executions(request_1.broker_id), 1);
  });
}

TEST_P(AdapterConformance, AnOrderThatMayNotGoIsNotSent) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto adapter = broker->adapter(executor, Behaviour::fills);
    const auto asked = order("held-key");
    auto request_1 = request(*adapter, asked);
    request_1.may_go = [] { return false; };
    const auto outcome = co_await adapter->send(request_1, soon());
    EXPECT_TRUE(outcome.held_back);
    EXPECT_EQ(co_await broker->executions(request_1.broker_id), 0);
    const auto request_2 = request(*adapter, asked);
    const auto later = co_await adapter->send(request_2, soon());
    EXPECT_EQ(later.result.status, ExecStatus::ok);
    EXPECT_EQ(co_await broker->executions(request_1.broker_id), 1);
  });
}

TEST_P(AdapterConformance, ARejectionIsFinalAndLeavesNoDoubt) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto adapter = broker->adapter(executor, Behaviour::rejects);
    const auto asked = order("reject-key");
    const auto request_1 = request(*adapter, asked);
    const auto outcome = co_await adapter->send(request_1, soon());
    EXPECT_EQ(outcome.result.reason_code, orders::reason::kBrokerRejected);
    EXPECT_FALSE(outcome.in_doubt);
    EXPECT_FALSE(outcome.duplicate);
    EXPECT_EQ(co_await broker->executions(request_1.broker_id), 0);
  });
}

TEST_P(AdapterConformance, SilenceIsATimeoutInDoubtAndTheNextTryIsTaken) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto adapter = broker->adapter(executor, Behaviour::stays_silent);
    const auto asked = order("silent-key");
    const auto request_1 = request(*adapter, asked);
    const auto first = co_await adapter->send(request_1, short_while());
    EXPECT_EQ(first.result.reason_code, orders::reason::kBrokerTimeout);
    EXPECT_TRUE(first.in_doubt);
    const auto request_2 = request(*adapter, asked, 2);
    const auto second = co_await adapter->send(request_2, soon());
    EXPECT_EQ(second.result.status, ExecStatus::ok);
    EXPECT_EQ(co_await broker->executions(request_1.broker_id), 1);
  });
}

TEST_P(AdapterConformance, ABrokerThatCantBeReachedLeavesNoDoubt) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto adapter = broker->adapter(executor, Behaviour::is_down);
    const auto asked = order("down-key");
    const auto request_1 = request(*adapter, asked);
    const auto outcome = co_await adapter->send(request_1, soon());
    // A broker with a session is known to be away before anything is tried.
    EXPECT_TRUE(outcome.held_back || outcome.result.reason_code == orders::reason::kBrokerDown);
    EXPECT_FALSE(outcome.in_doubt);
    EXPECT_EQ(co_await broker->executions(request_1.broker_id), 0);
  });
}

TEST_P(AdapterConformance, AnOrderWhoseAnswerWasLostIsFoundByItsKey) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto adapter = broker->adapter(executor, Behaviour::loses_answers);
    const auto asked = order("lost-key");
    const auto request_1 = request(*adapter, asked);
    const auto outcome = co_await adapter->send(request_1, short_while());
    EXPECT_EQ(outcome.result.reason_code, orders::reason::kBrokerTimeout);
    EXPECT_TRUE(outcome.in_doubt);
    EXPECT_EQ(co_await broker->executions(request_1.broker_id), 1);
    if (!adapter->can_find()) co_return;
    const auto found = co_await adapter->find(request_1, soon());
    EXPECT_EQ(found.answer, FindAnswer::found);
    EXPECT_EQ(found.result.status, ExecStatus::ok);
    EXPECT_EQ(found.result.executed_qty, decimal("0.1"));
  });
}

TEST_P(AdapterConformance, AnOrderThatTheBrokerNeverSawIsNotFound) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto adapter = broker->adapter(executor, Behaviour::fills);
    if (!adapter->can_find()) co_return;
    const auto asked = order("unknown-key");
    const auto request_1 = request(*adapter, asked);
    const auto found = co_await adapter->find(request_1, soon());
    EXPECT_EQ(found.answer, FindAnswer::not_found);
  });
}

TEST_P(AdapterConformance, ASecondCopyIsNotExecutedAndNoPlainRejection) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto adapter = broker->adapter(executor, Behaviour::fills);
    const auto asked = order("copy-key");
    const auto request_1 = request(*adapter, asked);
    co_await adapter->send(request_1, soon());
    const auto request_2 = request(*adapter, asked, 2);
    const auto second = co_await adapter->send(request_2, soon());
    EXPECT_TRUE(second.duplicate || second.result.status == ExecStatus::ok);
    EXPECT_EQ(co_await broker->executions(request_1.broker_id), 1);
  });
}

TEST_P(AdapterConformance, TheIdAtTheBrokerFollowsFromTheKeyAlone) {
  run_task([this]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto one = broker->adapter(executor, Behaviour::fills);
    const auto id = one->broker_id("some-key-1");
    EXPECT_NE(id, one->broker_id("some-key-2"));
    const auto another = broker->adapter(executor, Behaviour::rejects);
    EXPECT_EQ(another->broker_id("some-key-1"), id);
    co_return;
  });
}

INSTANTIATE_TEST_SUITE_P(Brokers, AdapterConformance,
                         testing::Values(CounterpartFactory{"paper", make_paper_counterpart},
                                         CounterpartFactory{"http", make_http_counterpart},
                                         CounterpartFactory{"fix", make_fix_counterpart}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace todoke::test
