#include "outbox/retention.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "outbox/retention_sql.hpp"

namespace todoke::outbox {
namespace {

constexpr std::chrono::minutes kRoundMax(10);
// A detach waits for every transaction that has read the log; one that is cut short is finished in the next
// round.
constexpr std::chrono::seconds kDetachMax(30);
constexpr std::int64_t kRowsOfBatch = 5'000;
constexpr int kBatchesOfRound = 200;  // a million rows; the next round goes on

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

void tell_lost(const std::string& consumer) {
  log::error("log retention", "a consumer has lost rows and needs a rebuild (`todoke consumers rebuild`)",
             {{"consumer", consumer}});
}

}  // namespace

LogRetention::LogRetention(const Executor& executor, RetentionOptions options, pg::Pool& pool,
                           HealthBoard& health, metrics::Registry& registry)
    : options_(options),
      pool_(pool),
      health_(health),
      rows_deleted_(registry.counter("todoke_log_rows_deleted_total",
                                     "Rows that retention took from the log one by one.")),
      partitions_dropped_(
          registry.counter("todoke_log_partitions_dropped_total", "Partitions that retention dropped.")),
      bytes_(registry.gauge("todoke_log_bytes", "Size of the log with its indexes.")),
      held_back_(
          registry.gauge("todoke_log_held_back", "1: a mandatory consumer keeps old rows from going.")),
      stop_asked_(executor) {}

Expected<void> LogRetention::validate() const {
  if (options_.keep <= options_.keep_max) return {};
  return refuse("log.retention_max must be at least log.retention");
}

Task<void> LogRetention::start() {
  co_return;
}

void LogRetention::stop() {
  stop_asked_.set();
}

Task<void> LogRetention::run() {
  for (;;) {
    std::exception_ptr failure;
    try {
      co_await round();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) log::warning("log retention", "put off", {{"error", describe(failure)}});
    const bool stopped = co_await stop_asked_.wait_for(options_.every);
    if (stopped) break;
  }
  health_.forget("log held back");
}

Task<void> LogRetention::round() {
  const auto deadline = Deadline::after(kRoundMax);
  const auto lease = co_await pool_.acquire(deadline);
  const auto locked = co_await lease->query(sql::kTryRetentionLock, {}, deadline);
  if (!locked.one().get<bool>(0)) co_return;
  std::exception_ptr failure;
  try {
    co_await empty_log(*lease, deadline);
    co_await lease->query(sql::kRetentionUnlock, {}, deadline);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    lease->close();  // the lock goes with the session
    std::rethrow_exception(failure);
  }
}

Task<void> LogRetention::empty_log(pg::Connection& connection, Deadline deadline) {
  held_back_.set(0);
  // A detach that was cut short has to be finished before the next one.
  const auto pending = co_await connection.query(sql::kPendingDetach, {}, deadline);
  for (const auto& row : pending) {
    const auto table = row.get<std::string>(0);
    auto script = fmt::format("ALTER TABLE cn_relay.events_outbox DETACH PARTITION {} FINALIZE", table);
    co_await connection.execute_script(std::move(script), Deadline::after(kDetachMax));
  }
  co_await connection.query(sql::kNoteTimes, {}, deadline);
  co_await drop_partitions(connection, deadline);
  co_await delete_rows(connection, deadline);
  co_await delete_effects(connection, deadline);
  co_await connection.query(sql::kDeleteOldRanges, {}, deadline);
  if (held_back_.value() == 0) health_.forget("log held back");
}

Task<LogRetention::Bound> LogRetention::bound(pg::Connection& connection, Deadline deadline) {
  const auto slowest = co_await connection.query(sql::kSlowestMandatory, {}, deadline);
  if (slowest.empty()) co_return Bound{std::numeric_limits<std::int64_t>::max(), ""};
  co_return Bound{slowest.one().get<std::int64_t>(1), slowest.one().get<std::string>(0)};
}

Task<void> LogRetention::drop_partitions(pg::Connection& connection, Deadline deadline) {
  pg::Params params(seconds(options_.keep), seconds(options_.keep_max));
  const auto old = co_await connection.query(sql::kOldPartitions, std::move(params), deadline);
  auto bytes = co_await measure(connection, deadline);
  for (const auto& row : old) {
    const auto limit = co_await bound(connection, deadline);
    const bool is_read = limit.seq >= row.get<std::int64_t>("last_seq");
    if (!is_read && !row.get<bool>("beyond_max") && bytes <= options_.bytes_max) {
      tell_held_back(limit.consumer);
      co_return;
    }
    co_await drop(connection, row, deadline);
    bytes = co_await measure(connection, deadline);
    if (stop_asked_.is_set()) co_return;
  }
}

Task<std::int64_t> LogRetention::measure(pg::Connection& connection, Deadline deadline) {
  const auto size = co_await connection.query(sql::kLogBytes, {}, deadline);
  const auto bytes = size.one().get<std::int64_t>(0);
  bytes_.set(static_cast<double>(bytes));
  co_return bytes;
}

Task<void> LogRetention::drop(pg::Connection& connection, pg::Row partition, Deadline deadline) {
  const auto first_seq = partition.get<std::int64_t>("first_seq");
  const auto last_seq = partition.get<std::int64_t>("last_seq");
  const auto table = partition.get<std::string>("table_name");
  // Told before it is done: a consumer that looks in between sees that its rows are gone, not an empty log.
  co_await raise_floor(connection, last_seq, deadline);
  if (partition.get<bool>("attached")) {
    auto detach = fmt::format("ALTER TABLE cn_relay.events_outbox DETACH PARTITION {} CONCURRENTLY", table);
    co_await connection.execute_script(std::move(detach), Deadline::after(kDetachMax));
  }
  auto drop_table = fmt::format("DROP TABLE IF EXISTS {}", table);
  co_await connection.execute_script(std::move(drop_table), deadline);
  co_await connection.query(sql::kForgetPartition, {first_seq}, deadline);
  partitions_dropped_.add();
  log::info("log retention", "a partition was dropped", {{"table", table}, {"until", last_seq}});
}

Task<void> LogRetention::raise_floor(pg::Connection& connection, std::int64_t dropped_until,
                                     Deadline deadline) {
  pg::Batch batch;
  batch.add(sql::kRaiseFloor, {dropped_until});
  batch.add(sql::kMarkLost, {dropped_until});
  const auto results = co_await connection.run(std::move(batch), deadline);
  for (const auto& row : results[1]) tell_lost(row.get<std::string>(0));
}

Task<void> LogRetention::delete_rows(pg::Connection& connection, Deadline deadline) {
  const auto limit = co_await bound(connection, deadline);
  for (int i = 0; i < kBatchesOfRound && !stop_asked_.is_set(); ++i) {
    // Up to where everybody has read by their age; beyond it only what is too old for anybody.
    auto count = co_await delete_batch(connection, options_.keep, limit.seq, deadline);
    if (count == 0) {
      count = co_await delete_batch(connection, options_.keep_max, std::numeric_limits<std::int64_t>::max(),
                                    deadline);
    }
    if (count == 0) break;
    rows_deleted_.add(static_cast<std::uint64_t>(count));
  }
  pg::Params params(seconds(options_.keep), limit.seq);
  const auto kept = co_await connection.query(sql::kOldRowsAfter, std::move(params), deadline);
  if (kept.one().get<bool>(0)) tell_held_back(limit.consumer);
}

Task<std::int64_t> LogRetention::delete_batch(pg::Connection& connection, std::chrono::milliseconds keep,
                                              std::int64_t until_seq, Deadline deadline) {
  pg::Params params(seconds(keep), until_seq, kRowsOfBatch);
  const auto deleted = co_await connection.query(sql::kDeleteOldRows, std::move(params), deadline);
  for (const auto& consumer : deleted.one().get<std::vector<std::string>>(1)) tell_lost(consumer);
  co_return deleted.one().get<std::int64_t>(0);
}

Task<void> LogRetention::delete_effects(pg::Connection& connection, Deadline deadline) {
  for (int i = 0; i < kBatchesOfRound && !stop_asked_.is_set(); ++i) {
    pg::Params params(kRowsOfBatch);
    const auto deleted = co_await connection.query(sql::kDeleteOldEffects, std::move(params), deadline);
    if (deleted.affected() == 0) co_return;
  }
}

void LogRetention::tell_held_back(const std::string& consumer) {
  if (held_back_.value() > 0) return;
  held_back_.set(1);
  health_.report(
      "log held back", false,
      {HealthState::degraded, fmt::format("{} has not read rows older than log.retention", consumer)});
  log::warning("log retention", "a mandatory consumer holds the log back", {{"consumer", consumer}});
}

}  // namespace todoke::outbox
