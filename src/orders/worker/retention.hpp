// Retention of orders that are over. Moves finished orders to the archive, deletes settled keys, and keeps a
// partition for each month of the journal and the archives: it makes the next ones and drops the old ones.
// Workers share this: one at a time does a page of each table.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/periodic.hpp"
#include "orders/core/db_link.hpp"
#include "orders/worker/metrics.hpp"

namespace todoke::orders {

class OrderRetention final : public PeriodicService {
 public:
  // `history_months`: of the journal and the archives; 0: for ever.
  OrderRetention(const Executor& executor, const pg::ConnectOptions& connect, std::int64_t history_months,
                 const Clock& clock, std::shared_ptr<OrderMetrics> metrics, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  // Makes the partitions, so that the worker finds them.
  Task<void> start() override;
  Task<void> run() override;

 private:
  Task<void> round(RoundCause cause) override;
  Task<void> keep_partitions();
  // Waits half a second at most for the lock that dropping a partition needs, because orders wait behind it.
  // The next round drops a partition that somebody was reading.
  Task<void> drop_history(pg::Connection& connection, Deadline deadline);
  // Each does one page. False: the table's end.
  Task<bool> archive_page();
  Task<bool> purge_ledger_page();

  std::int64_t history_months_;
  const Clock& clock_;
  std::shared_ptr<OrderMetrics> metrics_;
  DbLink link_;
  std::int64_t archive_after_ = 0;  // where the pass over the outbox stands
  SystemTime purge_after_{};        // where the pass over the ledger stands
  std::string purge_after_key_;
  std::optional<SteadyTime> partitions_at_;  // when they were looked after last
};

}  // namespace todoke::orders
