#include "base/async.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace todoke {

struct Signal::State {
  explicit State(Executor e) : executor(std::move(e)), timer(executor) {}
  Executor executor;
  asio::steady_timer timer;  // never expires: waiters hang on it and are woken by cancel()
  bool is_set = false;
};

Signal::Signal(Executor executor) : state_(std::make_shared<State>(std::move(executor))) {
  state_->timer.expires_at(SteadyTime::max());
}

void Signal::set() {
  state_->is_set = true;
  state_->timer.cancel();
}

void Signal::set_from_anywhere() {
  asio::post(state_->executor, [state = state_] {
    state->is_set = true;
    state->timer.cancel();
  });
}

void Signal::reset() {
  state_->is_set = false;
}

bool Signal::is_set() const {
  return state_->is_set;
}

const Executor& Signal::executor() const {
  return state_->executor;
}

Task<void> Signal::wait() {
  auto state = state_;
  while (!state->is_set) {
    boost::system::error_code ignored;
    co_await state->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

Task<bool> Signal::wait_for(std::chrono::nanoseconds limit) {
  // A second timer cancels the waiters of the first: every waiter looks at its own condition again.
  auto state = state_;
  auto up = std::make_shared<bool>(false);
  asio::steady_timer alarm(state->executor);
  alarm.expires_after(limit);
  alarm.async_wait([state, up](boost::system::error_code error) {
    if (error) return;
    *up = true;
    state->timer.cancel();
  });
  while (!state->is_set && !*up) {
    boost::system::error_code ignored;
    co_await state->timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  co_return state->is_set;
}

Task<void> sleep_for(std::chrono::nanoseconds duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_after(duration);
  co_await timer.async_wait(asio::use_awaitable);
}

void spawn(const Executor& executor, Task<void> work, std::function<void(std::exception_ptr)> on_end) {
  asio::co_spawn(executor, std::move(work), std::move(on_end));
}

namespace {

constexpr std::size_t kBlockingThreads = 4;

// The threads, and how many calls are under way. A call counts until its thread no longer touches the
// caller's executor, which is a moment after the caller goes on.
struct BlockingPool {
  std::mutex mutex;
  std::condition_variable idle;
  std::size_t calls = 0;
  asio::thread_pool threads{kBlockingThreads};  // last: its threads are joined before the rest goes

  void begin() {
    const std::lock_guard lock(mutex);
    ++calls;
  }
  void end() {
    const std::lock_guard lock(mutex);
    if (--calls == 0) idle.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    idle.wait(lock, [&] { return calls == 0; });
  }
};

BlockingPool& blocking_pool() {
  static BlockingPool pool;
  return pool;
}

// What a call and its caller share; the caller may be gone when the call ends.
struct BlockingCall {
  explicit BlockingCall(const Executor& executor) : done(executor) {}
  Signal done;
  std::exception_ptr failure;
};

}  // namespace

Task<void> run_blocking(std::function<void()> function) {
  auto call = std::make_shared<BlockingCall>(co_await asio::this_coro::executor);
  auto& pool = blocking_pool();
  pool.begin();
  asio::post(pool.threads, [&pool, call, function = std::move(function)]() mutable {
    try {
      function();
    } catch (...) {
      call->failure = std::current_exception();
    }
    function = nullptr;
    call->done.set_from_anywhere();
    call.reset();
    pool.end();
  });
  co_await call->done.wait();
  if (call->failure) std::rethrow_exception(call->failure);
}

void wait_for_blocking_calls() {
  blocking_pool().wait();
}

}  // namespace todoke
