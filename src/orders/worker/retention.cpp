#include "orders/worker/retention.hpp"

#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "orders/worker/retention_sql.hpp"

namespace todoke::orders {
namespace {

using namespace std::chrono_literals;

constexpr auto kArchiveEvery = 60s;
constexpr auto kPartitionsEvery = 1h;
constexpr auto kRoundMax = 10s;  // for the statements of one step
constexpr std::int64_t kPageRows = 1'000;
constexpr std::int64_t kBookRows = 10'000;
// Finished rows stay for a look; aborted ones until somebody has had the time to requeue them.
constexpr double kKeepSucceededSec = 24 * 3600;
constexpr double kKeepAbortedSec = 7 * 24 * 3600;
constexpr double kKeepLedgerSec = 48 * 3600;

}  // namespace

OrderRetention::OrderRetention(const Executor& executor, const pg::ConnectOptions& connect,
                               std::int64_t history_months, const Clock& clock,
                               std::shared_ptr<OrderMetrics> metrics, metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "order retention",
                       .failed = "finished orders were not archived",
                       .every = kArchiveEvery,
                       .begins_at_once = true},
                      registry),
      history_months_(history_months),
      clock_(clock),
      metrics_(std::move(metrics)),
      link_(connect) {}

Task<void> OrderRetention::start() {
  const auto until = Deadline::after(kRoundMax);
  auto* connection = co_await link_.get(until);
  co_await connection->query(sql::kEnsureOrderPartitions, {}, until);
}

Task<void> OrderRetention::run() {
  co_await PeriodicService::run();
  link_.close();
}

Task<void> OrderRetention::round(RoundCause /*cause*/) {
  if (!partitions_at_ || clock_.steady() - *partitions_at_ > kPartitionsEvery) co_await keep_partitions();
  bool has_more = true;
  while (has_more && !stop_asked()) {
    const bool more_orders = co_await archive_page();
    const bool more_keys = co_await purge_ledger_page();
    has_more = more_orders || more_keys;
  }
}

Task<void> OrderRetention::keep_partitions() {
  const auto until = Deadline::after(kRoundMax);
  auto* connection = co_await link_.get(until);
  co_await connection->query(sql::kEnsureOrderPartitions, {}, until);
  if (history_months_ > 0) co_await drop_history(*connection, until);
  partitions_at_ = clock_.steady();
}

Task<void> OrderRetention::drop_history(pg::Connection& connection, Deadline deadline) {
  pg::Params age(history_months_);
  const auto old = co_await connection.query(sql::kOldOrderPartitions, std::move(age), deadline);
  for (const auto& row : old) {
    const auto table = row.get<std::string>(0);
    pg::Params partition(table);
    const auto dropped =
        co_await attempt(connection.query(sql::kDropOldOrderPartition, std::move(partition), deadline));
    if (!dropped) {
      log::warning("orders", "old history was not dropped",
                   {{"table", table}, {"error", describe(dropped.error())}});
      if (!connection.usable()) std::rethrow_exception(dropped.error());
      continue;
    }
    metrics_->history_dropped.add();
    log::info("orders", "old history was dropped", {{"table", table}});
  }
  pg::Params book(history_months_, kBookRows);
  co_await connection.query(sql::kForgetPaperOrders, std::move(book), deadline);
}

Task<bool> OrderRetention::archive_page() {
  const auto until = Deadline::after(kRoundMax);
  auto* connection = co_await link_.get(until);
  pg::Params page(archive_after_, kPageRows, kKeepSucceededSec, kKeepAbortedSec);
  const auto archived = co_await connection->query(sql::kArchiveOrders, std::move(page), until);
  const auto row = archived.one();
  metrics_->archived.add(static_cast<std::uint64_t>(row.get<std::int64_t>(3)));
  const bool is_end = row.get<bool>(2) || row.get<std::int64_t>(1) < kPageRows;
  archive_after_ = is_end ? 0 : row.get<std::int64_t>(0);
  co_return !is_end;
}

Task<bool> OrderRetention::purge_ledger_page() {
  const auto until = Deadline::after(kRoundMax);
  auto* connection = co_await link_.get(until);
  pg::Params page(purge_after_, purge_after_key_, kPageRows, kKeepLedgerSec);
  const auto purged = co_await connection->query(sql::kPurgeLedger, std::move(page), until);
  const bool is_end = purged.empty() || purged[0].get<std::int64_t>(2) < kPageRows;
  purge_after_ = is_end ? SystemTime{} : purged[0].get<SystemTime>(0);
  purge_after_key_ = is_end ? "" : purged[0].get<std::string>(1);
  co_return !is_end;
}

}  // namespace todoke::orders
