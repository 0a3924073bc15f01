// The one way to try a piece of database work again. Repeats it after serialization failures, deadlocks, lock
// timeouts and lost connections, with backoff, as long as the deadline allows; everything else goes on to the
// caller at once.
//
//   co_await pg::with_retry({}, deadline, [&]() -> Task<void> { auto lease = co_await pool.acquire(deadline);
//   … });
//
// The work is run from its start: it must take its connection anew, and what it does outside of a transaction
// may happen twice. A CommitOutcomeUnknown is repeated only on request, by those whose work finds out by
// itself whether it was done before.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/async.hpp"
#include "base/backoff.hpp"
#include "base/clock.hpp"

namespace todoke::pg {

struct RetryPolicy {
  int tries_max = 5;
  std::chrono::milliseconds pause_first{10};
  std::chrono::milliseconds pause_most{1'000};
  bool retry_unknown_commit = false;
};

// Whether another try may help.
bool is_retryable(const std::exception_ptr& error, const RetryPolicy& policy) noexcept;

template <class Work>
std::invoke_result_t<Work&> with_retry(RetryPolicy policy, Deadline deadline, Work work) {
  Backoff backoff(policy.pause_first, policy.pause_most);
  for (int tried = 1;; ++tried) {
    std::exception_ptr failure;
    try {
      if constexpr (std::is_same_v<std::invoke_result_t<Work&>, Task<void>>) {
        co_await work();
        co_return;
      } else {
        co_return co_await work();
      }
    } catch (...) {
      failure = std::current_exception();
    }
    const auto pause = backoff.next();
    if (tried >= policy.tries_max || pause >= deadline.left() || !is_retryable(failure, policy)) {
      std::rethrow_exception(failure);
    }
    co_await sleep_for(pause);
  }
}

}  // namespace todoke::pg
