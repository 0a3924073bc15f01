// The paper broker is a table: whoever gets no connection has not reached it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run_task.hpp"
#include "harness/test_database.hpp"
#include "orders/brokers/paper/adapter.hpp"
#include "orders/core/order.hpp"

namespace todoke::test {
namespace {

using namespace std::chrono_literals;

class PaperPool : public testing::Test {
 protected:
  PaperPool() {
    pg::PoolOptions options;
    options.connect.url = database.url();
    options.connections_max = 1;
    pool = std::make_unique<pg::Pool>(options, clock, registry);
    order.idempotency_key = "paper-pool";
    order.instrument = "BTC-USD";
    order.qty = orders::Decimal(1);
  }
  orders::SendRequest request(const orders::PaperAdapter& adapter) {
    orders::SendRequest made;
    made.order = &order;
    made.idempotency_key = order.idempotency_key;
    made.broker_id = adapter.broker_id(order.idempotency_key);
    made.claim_no = 1;
    return made;
  }

  TestDatabase database;
  SystemClock clock;
  metrics::Registry registry;
  std::unique_ptr<pg::Pool> pool;
  orders::Order order;
};

TEST_F(PaperPool, AnOrderThatGotNoConnectionWasNotSent) {
  run_task([this]() -> Task<void> {
    orders::PaperAdapter adapter({}, *pool, clock);
    const auto taken = co_await pool->acquire(Deadline::after(30s));
    const auto asked = request(adapter);
    const auto outcome = co_await adapter.send(asked, Deadline::after(50ms));
    EXPECT_EQ(outcome.result.reason_code, orders::reason::kBrokerDown);
    EXPECT_THAT(outcome.message, testing::HasSubstr("database.pool_max"));
    EXPECT_FALSE(outcome.in_doubt);
  });
}

}  // namespace
}  // namespace todoke::test
