// The one door to Asio's coroutines. Everything that waits is a Task; a Task runs on the executor that it was
// spawned on. Included widely, so it names only the light parts of Asio (sockets, TLS and Beast stay inside
// src/net).
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace todoke {

namespace asio = boost::asio;

template <class T = void>
using Task = asio::awaitable<T>;
using Executor = asio::any_io_executor;

using SystemTime = std::chrono::system_clock::time_point;
using SteadyTime = std::chrono::steady_clock::time_point;
using Millis = std::chrono::milliseconds;

// Something that happens and that coroutines of one executor wait for. It stays set until reset. A test waits
// for one instead of sleeping; a service uses one as "stop was asked for" and as "there is work". Not
// thread-safe: set, reset and wait on the executor that it was made with; `set_from_anywhere` posts there.
class Signal {
 public:
  explicit Signal(Executor executor);
  ~Signal() = default;
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void set();
  void set_from_anywhere();
  void reset();
  [[nodiscard]] bool is_set() const;

  Task<void> wait();
  // Waits at most `limit`. True: the signal is set. False: the time was up.
  Task<bool> wait_for(std::chrono::nanoseconds limit);

  [[nodiscard]] const Executor& executor() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Suspends for `duration` (real time).
Task<void> sleep_for(std::chrono::nanoseconds duration);

// Runs `work` on `executor` in the background. What it throws ends up in `on_end` (null when it ended well).
void spawn(const Executor& executor, Task<void> work, std::function<void(std::exception_ptr)> on_end);

// Runs a blocking function on a small shared thread pool (DNS, file I/O, hashing of passwords, libpq's
// cancel) and resumes the caller on its own executor. The pool has 4 threads; the functions given to it must
// end by themselves.
Task<void> run_blocking(std::function<void()> function);

// Waits until no such call is under way. To be called before an event loop that used them is destroyed: the
// thread of a call still touches the caller's loop for a moment after the caller has gone on.
void wait_for_blocking_calls();

}  // namespace todoke
