// Runs a coroutine of a test to its end on an io_context of its own, and gives its value or throws what it
// threw.
//
//   run_task([&]() -> Task<void> { … });
//
// The lambda lives until the coroutine has ended, so it may capture. A coroutine that hangs fails the test
// after `limit`.
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "base/async.hpp"

namespace todoke::test {

inline constexpr std::chrono::seconds kTaskMax(60);

namespace detail {

template <class Work, class Value>
Task<void> keep_value(Work& work, std::optional<Value>& value) {
  value.emplace(co_await work());
}

inline void run_to_end(Task<void> task, std::chrono::seconds limit) {
  asio::io_context io;
  std::exception_ptr failure;
  bool ended = false;
  asio::co_spawn(io, std::move(task), [&](std::exception_ptr error) {
    failure = std::move(error);
    ended = true;
    io.stop();
  });
  io.run_for(limit);
  wait_for_blocking_calls();
  if (!ended) throw std::runtime_error("a coroutine of the test did not end in time");
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail

template <class Work>
auto run_task(Work work, std::chrono::seconds limit = kTaskMax) {
  using Value = typename std::invoke_result_t<Work&>::value_type;
  if constexpr (std::is_void_v<Value>) {
    detail::run_to_end(work(), limit);
  } else {
    std::optional<Value> value;
    detail::run_to_end(detail::keep_value(work, value), limit);
    return std::move(*value);
  }
}

}  // namespace todoke::test
