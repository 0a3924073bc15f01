// Runs a Task and gives its value or what it threw, so that the answer to a failure can wait for something. A
// catch block can't: C++ forbids co_await there.
//
//   const auto stored = co_await attempt(store(batch));
//   if (!stored) co_await mend(stored.error());
//
// Costs one coroutine frame.
#pragma once

#include <exception>
#include <tl/expected.hpp>
#include <utility>

#include "base/async.hpp"

namespace todoke {

template <class T>
using Attempt = tl::expected<T, std::exception_ptr>;

template <class T>
Task<Attempt<T>> attempt(Task<T> work) {
  try {
    co_return co_await std::move(work);
  } catch (...) {
    co_return tl::unexpected(std::current_exception());
  }
}

inline Task<Attempt<void>> attempt(Task<void> work) {
  try {
    co_await std::move(work);
    co_return Attempt<void>();
  } catch (...) {
    co_return tl::unexpected(std::current_exception());
  }
}

// Whether a failure is an E or a child of it.
template <class E>
bool is_a(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const E&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace todoke
