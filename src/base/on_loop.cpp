#include "base/on_loop.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "base/run_on.hpp"

namespace todoke {

OnLoop::OnLoop(Executor executor, std::shared_ptr<Service> service)
    : executor_(std::move(executor)), service_(std::move(service)) {}

Task<void> OnLoop::start() {
  co_await run_on(executor_, service_->start());
}

Task<void> OnLoop::run() {
  co_await run_on(executor_, service_->run());
}

void OnLoop::stop() {
  asio::post(executor_, [service = service_] { service->stop(); });
}

}  // namespace todoke
