// The operators' view of orders: gauges, and a line of health that says when no worker sends. Runs in every
// process of the role, with a worker or without.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/periodic.hpp"
#include "orders/worker/metrics.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

class OrderMonitor final : public PeriodicService {
 public:
  static constexpr std::chrono::milliseconds kMeasureEvery{2'000};

  // `worker`: the name and the adapter of the worker of this process, where it has one.
  struct OwnWorker {
    std::string name;
    std::string adapter;
    std::chrono::milliseconds lease{};
  };
  OrderMonitor(const Executor& executor, std::optional<OwnWorker> worker, pg::Pool& pool, HealthBoard& board,
               std::shared_ptr<OrderMetrics> metrics, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;

  // On the executor: the worker's lease from now on.
  void set_lease(std::chrono::milliseconds lease) {
    if (worker_) worker_->lease = lease;
  }

 private:
  Task<void> round(RoundCause cause) override;
  Task<void> measure();
  Task<void> remove_worker();

  std::optional<OwnWorker> worker_;
  pg::Pool& pool_;
  HealthBoard& board_;
  std::shared_ptr<OrderMetrics> metrics_;
};

}  // namespace todoke::orders
