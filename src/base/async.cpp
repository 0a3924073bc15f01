#include "base/async.hpp"

#include <exception>
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

asio::thread_pool& blocking_pool() {
  static asio::thread_pool pool(kBlockingThreads);
  return pool;
}

Task<void> call(std::function<void()> function) {
  function();
  co_return;
}
}  // namespace

Task<void> run_blocking(std::function<void()> function) {
  co_await asio::co_spawn(blocking_pool(), call(std::move(function)), asio::use_awaitable);
}

}  // namespace todoke
