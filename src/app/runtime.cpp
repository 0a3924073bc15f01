#include "app/runtime.hpp"

#include <exception>
#include <pthread.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>

#include "base/log.hpp"

namespace todoke::app {

Runtime::Runtime(std::size_t connection_loops) {
  if (connection_loops == 0) return;
  relay_ = std::make_unique<asio::io_context>(1);
  consumers_ = std::make_unique<asio::io_context>(1);
  gossip_ = std::make_unique<asio::io_context>(1);
  reads_ = std::make_unique<asio::io_context>(1);
  for (std::size_t i = 0; i < connection_loops; ++i)
    connections_.push_back(std::make_unique<asio::io_context>(1));
  door_ = std::make_unique<asio::io_context>(1);
}

Runtime::~Runtime() {
  end_threads();
  wait_for_blocking_calls();
}

std::vector<Executor> Runtime::connections() {
  std::vector<Executor> executors;
  for (auto& loop : connections_) executors.emplace_back(loop->get_executor());
  return executors;
}

void Runtime::run_beside(asio::io_context& loop, const char* name, Priority priority) {
  threads_.emplace_back([&loop, name, priority] {
    pthread_setname_np(pthread_self(), name);
    if (!set_priority(0, priority)) log::debug("runtime", "the priority of a loop was not changed");
    const auto guard = asio::make_work_guard(loop);
    loop.run();
  });
}

void Runtime::end_threads() {
  for (auto* loop : {relay_.get(), consumers_.get(), gossip_.get(), reads_.get(), door_.get()}) {
    if (loop != nullptr) loop->stop();
  }
  for (auto& loop : connections_) loop->stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void Runtime::run(Task<void> work) {
  if (relay_) run_beside(*relay_, "relay", Priority::ordinary);
  if (consumers_) run_beside(*consumers_, "consumers", Priority::background);
  if (gossip_) run_beside(*gossip_, "gossip", Priority::ordinary);
  if (reads_) run_beside(*reads_, "reads", Priority::last);
  for (auto& loop : connections_) run_beside(*loop, "connections", Priority::ordinary);
  if (door_) run_beside(*door_, "door", Priority::background);
  std::exception_ptr failure;
  asio::co_spawn(main_, std::move(work), [&](std::exception_ptr error) {
    failure = std::move(error);
    main_.stop();
  });
  main_.run();
  end_threads();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace todoke::app
