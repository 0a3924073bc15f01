#include "app/runtime.hpp"

#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>

namespace todoke::app {

Runtime::Runtime(std::size_t loops) {
  for (std::size_t i = 1; i < loops; ++i) others_.push_back(std::make_unique<asio::io_context>(1));
}

Runtime::~Runtime() {
  for (auto& io : others_) io->stop();
  for (auto& thread : threads_) thread.join();
  wait_for_blocking_calls();
}

Executor Runtime::main() {
  return main_.get_executor();
}

std::vector<Executor> Runtime::connections() {
  std::vector<Executor> executors{main_.get_executor()};
  for (auto& io : others_) executors.emplace_back(io->get_executor());
  return executors;
}

void Runtime::run(Task<void> work) {
  for (auto& io : others_) {
    threads_.emplace_back([&context = *io] {
      const auto guard = asio::make_work_guard(context);
      context.run();
    });
  }
  std::exception_ptr failure;
  asio::co_spawn(main_, std::move(work), [&](std::exception_ptr error) {
    failure = std::move(error);
    main_.stop();
  });
  main_.run();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace todoke::app
