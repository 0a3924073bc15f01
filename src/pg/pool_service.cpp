#include "pg/pool_service.hpp"

#include <utility>

namespace todoke::pg {

namespace {
constexpr std::chrono::seconds kTidyEvery(15);
constexpr std::chrono::seconds kPingMax(10);
constexpr Statement kPing{"ping", "SELECT 1"};
}  // namespace

PoolService::PoolService(Executor executor, Pool& pool) : pool_(pool), stop_asked_(std::move(executor)) {}

Task<void> PoolService::start() {
  const auto deadline = Deadline::after(kPingMax);
  auto lease = co_await pool_.acquire(deadline);
  co_await lease->query(kPing, {}, deadline);
}

// Throws when the server stops answering: the supervisor shows it and starts again.
Task<void> PoolService::run() {
  while (true) {
    const bool stopping = co_await stop_asked_.wait_for(kTidyEvery);
    if (stopping) co_return;
    pool_.close_expired();
    co_await start();
  }
}

void PoolService::stop() {
  stop_asked_.set();
}

}  // namespace todoke::pg
