#include "pg/pool.hpp"

#include <thread>

#include "base/metrics.hpp"
#include "pg/support.hpp"
#include "pg/transaction.hpp"

namespace todoke::pg {
namespace {

constexpr Statement kPid{"pid", "SELECT pg_backend_pid()"};

class PoolTest : public testing::Test {
 protected:
  PoolOptions options(std::size_t connections_max) const {
    PoolOptions made;
    made.connect.url = db_.url();
    made.connections_max = connections_max;
    return made;
  }

  TestDatabase db_;
  ManualClock clock_;
  metrics::Registry registry_;
};

Task<void> hold(Pool& pool, std::vector<int>& order, int number, Signal& let_go) {
  auto lease = co_await pool.acquire(soon());
  order.push_back(number);
  co_await let_go.wait();
}

Task<void> acquire_and_drop(Pool& pool, Deadline deadline) {
  co_await pool.acquire(deadline);
}

Task<void> query_once(Pool& pool, Statement statement, Params params, Deadline deadline) {
  auto lease = co_await pool.acquire(deadline);
  co_await lease->query(statement, std::move(params), deadline);
}

template <class E>
Task<bool> throws(Task<void> work) {
  try {
    co_await std::move(work);
  } catch (const E&) {
    co_return true;
  }
  co_return false;
}

TEST_F(PoolTest, AConnectionIsUsedAgain) {
  Pool pool(options(4), clock_, registry_);
  run_task([&]() -> Task<void> {
    std::int32_t pid = 0;
    for (int i = 0; i < 3; ++i) {
      auto lease = co_await pool.acquire(soon());
      const auto result = co_await lease->query(kPid, {}, soon());
      EXPECT_TRUE(pid == 0 || result.one().get<std::int32_t>(0) == pid);
      pid = result.one().get<std::int32_t>(0);
    }
    EXPECT_EQ(pool.counts().idle, 1u);
  });
  EXPECT_NE(registry_.render().find("todoke_pg_connects_total 1"), std::string::npos);
}

TEST_F(PoolTest, CallersAreServedInTheOrderInWhichTheyCame) {
  Pool pool(options(1), clock_, registry_);
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    Signal let_go(executor);
    std::vector<int> order;
    std::vector<Beside> callers;
    {
      auto first = co_await pool.acquire(soon());
      for (int i = 0; i < 5; ++i) callers.emplace_back(executor, hold(pool, order, i, let_go));
      while (pool.counts().waiting < 5) co_await sleep_for(0ms);
      EXPECT_EQ(pool.counts().busy, 1u);
    }
    let_go.set();
    for (auto& caller : callers) co_await caller.join();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  });
}

TEST_F(PoolTest, WaitingIsBoundedInTimeAndNumber) {
  auto tight = options(1);
  tight.waiters_max = 1;
  tight.wait_max = 100ms;
  Pool pool(tight, clock_, registry_);
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    auto lease = co_await pool.acquire(soon());
    Beside waiting(executor, acquire_and_drop(pool, soon()));
    while (pool.counts().waiting < 1) co_await sleep_for(0ms);
    EXPECT_TRUE(co_await throws<PoolTimeout>(acquire_and_drop(pool, soon())));
    EXPECT_FALSE(waiting.ended());
    EXPECT_TRUE(co_await throws<PoolTimeout>(waiting.join()));
    EXPECT_EQ(pool.counts().waiting, 0u);
  });
  EXPECT_NE(registry_.render().find("todoke_pg_pool_timeouts_total{pool=\"main\"} 2"), std::string::npos);
}

TEST_F(PoolTest, AnOpenTransactionIsRolledBackBeforeTheNextCaller) {
  db_.execute("CREATE TABLE t (n int)");
  Pool pool(options(1), clock_, registry_);
  run_task([&]() -> Task<void> {
    std::int32_t pid = 0;
    {
      auto lease = co_await pool.acquire(soon());
      pid = lease->backend_pid();
      auto dropped = co_await begin(*lease, soon());
      co_await lease->query({"insert", "INSERT INTO t VALUES (1)"}, {}, soon());
    }
    auto lease = co_await pool.acquire(soon());
    EXPECT_EQ(lease->backend_pid(), pid);
    EXPECT_FALSE(lease->in_transaction());
    const auto result = co_await lease->query({"count", "SELECT count(*) FROM t"}, {}, soon());
    EXPECT_EQ(result.one().get<std::int64_t>(0), 0);
  });
}

TEST_F(PoolTest, ABrokenConnectionIsReplaced) {
  Pool pool(options(1), clock_, registry_);
  run_task([&]() -> Task<void> {
    const auto admin = co_await db_.connect();
    const auto executor = co_await asio::this_coro::executor;
    int pid = 0;
    {
      auto lease = co_await pool.acquire(soon());
      pid = lease->backend_pid();
    }
    // In the middle of a call.
    Beside victim(executor, query_once(pool, kSleep, {60.0}, soon()));
    co_await wait_until_stuck(*admin, pid);
    co_await terminate(*admin, pid);
    EXPECT_TRUE(co_await throws<ConnectionLost>(victim.join()));
    co_await query_once(pool, kOne, {}, soon());
    // While it is idle.
    {
      auto lease = co_await pool.acquire(soon());
      pid = lease->backend_pid();
    }
    co_await terminate(*admin, pid);
    co_await wait_until(
        *admin, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = " + std::to_string(pid) + ")");
    co_await query_once(pool, kOne, {}, soon());
    EXPECT_EQ(pool.counts().idle, 1u);
    EXPECT_EQ(pool.counts().busy, 0u);
  });
}

TEST_F(PoolTest, AServerThatCantBeReachedIsATimeoutThatSaysWhy) {
  auto unreachable = options(2);
  unreachable.connect.url = "host=127.0.0.1 port=1 user=postgres";
  unreachable.wait_max = 1s;
  Pool pool(unreachable, clock_, registry_);
  run_task([&]() -> Task<void> {
    std::string message;
    try {
      co_await pool.acquire(soon());
    } catch (const PoolTimeout& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("refused"), std::string::npos) << message;
    EXPECT_EQ(pool.counts().busy, 0u);
  });
  EXPECT_EQ(registry_.render().find("todoke_pg_connect_failures_total 0"), std::string::npos);
}

TEST_F(PoolTest, IdleConnectionsBeyondTheMinimumAreClosedAfterAWhile) {
  auto idle = options(4);
  idle.connections_idle_min = 1;
  idle.idle_max = 60s;
  Pool pool(idle, clock_, registry_);
  run_task([&]() -> Task<void> {
    {
      auto first = co_await pool.acquire(soon());
      auto second = co_await pool.acquire(soon());
      auto third = co_await pool.acquire(soon());
    }
    pool.close_expired();
    EXPECT_EQ(pool.counts().idle, 3u);
    clock_.advance(61s);
    pool.close_expired();
    EXPECT_EQ(pool.counts().idle, 1u);
  });
}

TEST_F(PoolTest, AConnectionThatIsTooOldIsReplaced) {
  auto aging = options(1);
  aging.lifetime_max = 1h;
  Pool pool(aging, clock_, registry_);
  run_task([&]() -> Task<void> {
    int pid = 0;
    {
      auto lease = co_await pool.acquire(soon());
      pid = lease->backend_pid();
    }
    clock_.advance(1h);
    auto lease = co_await pool.acquire(soon());
    EXPECT_NE(lease->backend_pid(), pid);
  });
}

TEST_F(PoolTest, AClosedPoolRefusesAndWakesThoseWhoWait) {
  Pool pool(options(1), clock_, registry_);
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    auto lease = co_await pool.acquire(soon());
    Beside waiting(executor, acquire_and_drop(pool, soon()));
    while (pool.counts().waiting < 1) co_await sleep_for(0ms);
    pool.close();
    EXPECT_TRUE(co_await throws<ConnectionLost>(waiting.join()));
    EXPECT_TRUE(co_await throws<ConnectionLost>(acquire_and_drop(pool, soon())));
  });
  EXPECT_EQ(pool.counts().idle, 0u);
}

Task<void> query_often(Pool& pool, int times) {
  for (int i = 0; i < times; ++i) co_await query_once(pool, kOne, {}, soon());
}

TEST_F(PoolTest, SeveralThreadsWithContextsOfTheirOwnShareFewConnections) {
  Pool pool(options(2), clock_, registry_);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&pool] {
      run_task([&pool]() -> Task<void> {
        const auto executor = co_await asio::this_coro::executor;
        std::vector<Beside> callers;
        for (int j = 0; j < 4; ++j) callers.emplace_back(executor, query_often(pool, 25));
        for (auto& caller : callers) co_await caller.join();
      });
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(pool.counts().busy, 0u);
  EXPECT_LE(pool.counts().idle, 2u);
  EXPECT_GE(pool.counts().idle, 1u);
}

}  // namespace
}  // namespace todoke::pg
