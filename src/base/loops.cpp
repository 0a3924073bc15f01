#include "base/loops.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"

namespace todoke {

Loops::Loops(Executor executor, std::string service, std::function<void()> end_others)
    : executor_(std::move(executor)),
      service_(std::move(service)),
      end_others_(std::move(end_others)),
      ended_(executor_) {}

void Loops::launch(std::string name, Task<void> loop) {
  ++running_;
  spawn(executor_, std::move(loop),
        [this, name = std::move(name)](const std::exception_ptr& failure) { ended(name, failure); });
}

void Loops::ended(const std::string& name, const std::exception_ptr& failure) {
  if (failure) {
    log::error("loops", "a loop has died, the others end with it",
               {{"service", service_}, {"loop", name}, {"error", describe(failure)}});
    if (!failure_) {
      failure_ = failure;
      end_others_();
    }
  }
  --running_;
  ended_.set();
}

Task<void> Loops::wait(std::size_t left) {
  while (running_ > left) {
    ended_.reset();
    co_await ended_.wait();
  }
}

Task<void> Loops::join() {
  co_await wait();
  if (const auto failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

}  // namespace todoke
