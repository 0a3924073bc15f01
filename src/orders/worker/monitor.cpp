#include "orders/worker/monitor.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "orders/core/gauges.hpp"
#include "orders/worker/monitor_sql.hpp"

namespace todoke::orders {
namespace {

constexpr std::chrono::milliseconds kQueryMax(5'000);
const std::string kHealthLine = "order sending";
constexpr double kBreakerProbing = 2;  // of outbox_breaker_state; above it: open

// Of a value of outbox_breaker_state.
std::string_view breaker_text(double state) {
  constexpr std::array<std::string_view, 4> kTexts{"closed", "ramping", "probing", "open"};
  return kTexts.at(static_cast<std::size_t>(state));
}

// Why orders are not sent, the gravest reason first; empty: they are.
std::string problem_of(const OrderGauges& gauges, double breaker) {
  if (gauges.halts > 0) return "orders are halted; `todoke orders stats` says which";
  if (gauges.workers == 0) {
    return "no worker runs: orders are accepted and wait; set outbox.enabled (OUTBOX_ENABLED=true)";
  }
  if (!gauges.orphaned.empty()) {
    return fmt::format("orders in doubt wait for a worker of the adapter {}, which has tried them",
                       gauges.orphaned);
  }
  if (gauges.adapters.find(',') != std::string::npos) {
    return fmt::format("workers of different adapters share the orders of this database: {}",
                       gauges.adapters);
  }
  if (breaker >= kBreakerProbing) {
    return "no order gets through to the broker: the breaker is open, one order at a time probes it";
  }
  return {};
}

}  // namespace

OrderMonitor::OrderMonitor(const Executor& executor, std::optional<OwnWorker> worker, pg::Pool& pool,
                           HealthBoard& board, std::shared_ptr<OrderMetrics> metrics,
                           metrics::Registry& registry)
    : PeriodicService(
          executor, {.name = "order monitor", .failed = "orders can't be looked at", .every = kMeasureEvery},
          registry),
      worker_(std::move(worker)),
      pool_(pool),
      board_(board),
      metrics_(std::move(metrics)) {}

Task<void> OrderMonitor::start() {
  co_await measure();
}

Task<void> OrderMonitor::run() {
  co_await PeriodicService::run();
  const auto removed = co_await attempt(remove_worker());
  if (!removed)
    log::warning("orders", "the worker's row was left behind", {{"error", describe(removed.error())}});
}

Task<void> OrderMonitor::round(RoundCause /*cause*/) {
  const auto measured = co_await attempt(measure());
  if (measured) co_return;
  board_.report(kHealthLine, false,
                {HealthState::degraded, "can't be looked at: " + describe(measured.error())});
  std::rethrow_exception(measured.error());
}

Task<void> OrderMonitor::measure() {
  const auto deadline = Deadline::after(kQueryMax);
  const auto lease = co_await pool_.acquire(deadline);
  if (worker_) {
    pg::Params params(worker_->name, worker_->adapter, std::chrono::duration<double>(worker_->lease).count(),
                      breaker_text(metrics_->breaker.value()));
    co_await lease->query(sql::kWorkerSeen, std::move(params), deadline);
  }
  const auto gauges = co_await read_gauges(*lease, deadline);
  metrics_->oldest_pending.set(gauges.oldest_pending_seconds);
  metrics_->in_doubt.set(static_cast<double>(gauges.in_doubt));
  metrics_->halts.set(static_cast<double>(gauges.halts));
  const auto problem = problem_of(gauges, metrics_->breaker.value());
  board_.report(kHealthLine, false, {problem.empty() ? HealthState::up : HealthState::degraded, problem});
}

Task<void> OrderMonitor::remove_worker() {
  if (!worker_) co_return;
  const auto deadline = Deadline::after(kQueryMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(worker_->name);
  co_await lease->query(sql::kWorkerGone, std::move(params), deadline);
}

}  // namespace todoke::orders
