// Slices of pages (client_output.hpp) take turns on their loop: one slice in a turn of the loop, whoever it
// is for. So other work on the loop, such as an order or an event of somebody else, waits for one slice, and
// not for one of each client that is being sent a page.
//
// One for each loop, made when it is asked for first. Bounded by its callers: one slice of each connection
// waits. On the loop only.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>

#include "base/async.hpp"

namespace todoke::relay {

class PageTurns final : public asio::execution_context::service {
 public:
  using key_type = PageTurns;
  static inline asio::execution_context::id id;

  explicit PageTurns(asio::execution_context& loop) : asio::execution_context::service(loop) {}

  static PageTurns& of(const Executor& executor) {
    return asio::use_service<PageTurns>(asio::query(executor, asio::execution::context));
  }

  // Calls `slice` once, in its turn.
  void wait(const Executor& executor, std::function<void()> slice) {
    waiting_.push_back(std::move(slice));
    if (waiting_.size() == 1) post_next(executor);
  }

 private:
  // The slice stays in line while it is called, so that what it adds is posted by the end of this.
  void post_next(const Executor& executor) {
    asio::post(executor, [this, executor] {
      std::exchange(waiting_.front(), nullptr)();
      waiting_.pop_front();
      if (!waiting_.empty()) post_next(executor);
    });
  }

  void shutdown() override { waiting_.clear(); }

  std::deque<std::function<void()>> waiting_;
};

}  // namespace todoke::relay
