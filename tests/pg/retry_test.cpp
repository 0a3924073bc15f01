#include "pg/retry.hpp"

#include "pg/support.hpp"
#include "pg/transaction.hpp"

namespace todoke::pg {
namespace {

constexpr Statement kBump{"bump", "UPDATE t SET n = n + 1"};
constexpr Statement kRead{"read", "SELECT n FROM t"};

TEST(WithRetry, ASerializationFailureIsTriedAgainFromTheStart) {
  const TestDatabase db;
  db.execute("CREATE TABLE t (n int); INSERT INTO t VALUES (0)");
  run_task([&]() -> Task<void> {
    const auto connection = co_await db.connect();
    const auto rival = co_await db.connect();
    int tries = 0;
    const auto n = co_await with_retry({}, soon(), [&]() -> Task<std::int32_t> {
      ++tries;
      auto transaction = co_await begin(*connection, soon(), Isolation::serializable);
      const auto before = co_await connection->query(kRead, {}, soon());
      if (tries == 1) co_await rival->query(kBump, {}, soon());
      co_await connection->query(kBump, {}, soon());
      co_await transaction.commit(soon());
      co_return before.one().get<std::int32_t>(0);
    });
    EXPECT_EQ(tries, 2);
    EXPECT_EQ(n, 1);
  });
}

template <class E>
Task<int> tries_until_given_up(RetryPolicy policy, Deadline deadline) {
  int tries = 0;
  try {
    co_await with_retry(policy, deadline, [&tries]() -> Task<void> {
      ++tries;
      throw E("again");
      co_return;
    });
  } catch (const E&) {
  }
  co_return tries;
}

TEST(WithRetry, TriesAndTimeAreBounded) {
  run_task([]() -> Task<void> {
    const RetryPolicy quick{.tries_max = 3, .pause_first = 1ms, .pause_most = 1ms};
    EXPECT_EQ(co_await tries_until_given_up<ConnectionLost>(quick, soon()), 3);
    EXPECT_EQ(co_await tries_until_given_up<ConnectionLost>(quick, Deadline::after(0ms)), 1);
    EXPECT_EQ(co_await tries_until_given_up<DeadlineExceeded>(quick, soon()), 1);
    EXPECT_EQ(co_await tries_until_given_up<CommitOutcomeUnknown>(quick, soon()), 1);
    auto daring = quick;
    daring.retry_unknown_commit = true;
    EXPECT_EQ(co_await tries_until_given_up<CommitOutcomeUnknown>(daring, soon()), 3);
  });
}

}  // namespace
}  // namespace todoke::pg
