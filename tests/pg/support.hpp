// What the tests of the Postgres room share.
#pragma once

#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include <boost/asio/this_coro.hpp>
#include <gtest/gtest.h>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "harness/run_task.hpp"
#include "harness/test_database.hpp"
#include "pg/connection.hpp"
#include "pg/error.hpp"

namespace todoke::pg {

using test::run_task;
using test::TestDatabase;
using namespace std::chrono_literals;

// Far beyond what anything here takes.
inline Deadline soon() {
  return Deadline::after(30s);
}

// A coroutine that runs beside the test on the same executor. What it threw comes out of join().
class Beside {
 public:
  Beside(const Executor& executor, Task<void> work) : state_(std::make_shared<State>(executor)) {
    spawn(executor, std::move(work), [state = state_](std::exception_ptr error) {
      state->failure = std::move(error);
      state->ended.set();
    });
  }
  Task<void> join() {
    co_await state_->ended.wait();
    if (state_->failure) std::rethrow_exception(state_->failure);
  }
  [[nodiscard]] bool ended() const { return state_->ended.is_set(); }

 private:
  struct State {
    explicit State(const Executor& executor) : ended(executor) {}
    Signal ended;
    std::exception_ptr failure;
  };
  std::shared_ptr<State> state_;
};

// Asks the server until `condition` (a boolean expression) holds.
inline Task<void> wait_until(Connection& admin, std::string condition) {
  const auto deadline = soon();
  const auto sql = "SELECT coalesce((" + condition + "), false)";
  while (true) {
    const auto result = co_await admin.query({"wait_until", sql}, {}, deadline);
    if (result.one().get<bool>(0)) co_return;
  }
}

inline constexpr Statement kOne{"one", "SELECT 1"};
inline constexpr Statement kSleep{"sleep", "SELECT pg_sleep($1)"};
inline constexpr Statement kCount{"count", "SELECT count(*) FROM t"};

inline Task<std::int64_t> count(Connection& connection) {
  const auto result = co_await connection.query(kCount, {}, soon());
  co_return result.one().get<std::int64_t>(0);
}

// Until the backend `pid` runs something that waits (for a lock, in pg_sleep, or for the client).
inline Task<void> wait_until_stuck(Connection& admin, int pid) {
  const auto condition =
      "SELECT state = 'active' AND wait_event IS NOT NULL FROM pg_stat_activity WHERE pid = " +
      std::to_string(pid);
  co_await wait_until(admin, condition);
}

inline Task<void> terminate(Connection& admin, int pid) {
  constexpr Statement kTerminate{"terminate", "SELECT pg_terminate_backend($1)"};
  Params params(pid);
  co_await admin.query(kTerminate, std::move(params), soon());
}

}  // namespace todoke::pg
