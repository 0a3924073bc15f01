// Work on another event loop. Apart from async.hpp because it costs every file that includes it Asio's
// co_spawn.
#pragma once

#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/async.hpp"

namespace todoke {

// Runs `work` on `executor` and resumes the caller on its own when it has ended, with what it returned or
// threw. Meanwhile no other code may touch what `work` uses. T must have a default constructor.
template <class T>
Task<T> run_on(Executor executor, Task<T> work) {
  co_return co_await asio::co_spawn(executor, std::move(work), asio::use_awaitable);
}

}  // namespace todoke
