#include "outbox/retention.hpp"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "outbox/retention_sql.hpp"

namespace todoke::outbox {
namespace {

constexpr std::chrono::minutes kRoundMax(10);
constexpr std::int64_t kRowsOfBatch = 5'000;
constexpr int kBatchesOfRound = 200;  // a million rows; the next round goes on

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

LogRetention::LogRetention(Executor executor, RetentionOptions options, pg::Pool& pool, HealthBoard& health,
                           metrics::Registry& registry)
    : options_(options),
      pool_(pool),
      health_(health),
      rows_deleted_(registry.counter("todoke_log_rows_deleted_total", "Rows that retention took from the log one by one.")),
      partitions_dropped_(registry.counter("todoke_log_partitions_dropped_total", "Partitions that retention dropped.")),
      bytes_(registry.gauge("todoke_log_bytes", "Size of the log with its indexes.")),
      held_back_(registry.gauge("todoke_log_held_back", "1: a mandatory consumer keeps old rows from going.")),
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
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    lease->close();  // the lock goes with the session
    std::rethrow_exception(failure);
  }
  co_await lease->query(sql::kRetentionUnlock, {}, deadline);
}

Task<void> LogRetention::empty_log(pg::Connection& connection, Deadline deadline) {
  held_back_.set(0);
  // A detach that was cut short has to be finished before the next one.
  const auto pending = co_await connection.query(sql::kPendingDetach, {}, deadline);
  for (const auto& row : pending) {
    const auto table = row.get<std::string>(0);
    auto script = fmt::format("ALTER TABLE cn_relay.events_outbox DETACH PARTITION {} FINALIZE", table);
    co_await connection.execute_script(std::move(script), deadline);
  }
  co_await connection.query(sql::kNoteTimes, {}, deadline);
  co_await drop_partitions(connection, deadline);
  co_await delete_rows(connection, deadline);
  pg::Params params(kRowsOfBatch);
  const auto effects = co_await connection.query(sql::kDeleteOldEffects, std::move(params), deadline);
  static_cast<void>(effects);
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
  for (const auto& row : old) {
    const auto size = co_await connection.query(sql::kLogBytes, {}, deadline);
    const auto bytes = size.one().get<std::int64_t>(0);
    bytes_.set(static_cast<double>(bytes));
    const auto limit = co_await bound(connection, deadline);
    const auto end = row.get<std::int64_t>(1);
    const bool is_read = limit.seq >= end - 1;
    if (!is_read && !row.get<bool>(3) && bytes <= options_.bytes_max) {
      tell_held_back(limit.consumer);
      co_return;
    }
    co_await drop(connection, row.get<std::int64_t>(0), end, row.get<std::string>(2), deadline);
  }
}

Task<void> LogRetention::drop(pg::Connection& connection, std::int64_t first_seq, std::int64_t end_seq,
                              std::string table, Deadline deadline) {
  // Told before it is done: a consumer that looks in between sees that its rows are gone, not an empty log.
  co_await raise_floor(connection, end_seq - 1, deadline);
  auto detach = fmt::format("ALTER TABLE cn_relay.events_outbox DETACH PARTITION {} CONCURRENTLY", table);
  co_await connection.execute_script(std::move(detach), deadline);
  auto drop_table = fmt::format("DROP TABLE {}", table);
  co_await connection.execute_script(std::move(drop_table), deadline);
  co_await connection.query(sql::kForgetPartition, {first_seq}, deadline);
  partitions_dropped_.add();
  log::info("log retention", "a partition was dropped", {{"table", table}, {"until", end_seq - 1}});
}

Task<void> LogRetention::raise_floor(pg::Connection& connection, std::int64_t dropped_until, Deadline deadline) {
  pg::Batch batch;
  batch.add(sql::kRaiseFloor, {dropped_until});
  batch.add(sql::kMarkLost, {dropped_until});
  const auto results = co_await connection.run(std::move(batch), deadline);
  for (const auto& row : results[1]) {
    log::error("log retention", "a consumer has lost rows and needs a rebuild (`todoke consumers rebuild`)",
               {{"consumer", row.get<std::string>(0)}});
  }
}

Task<void> LogRetention::delete_rows(pg::Connection& connection, Deadline deadline) {
  const auto limit = co_await bound(connection, deadline);
  for (int i = 0; i < kBatchesOfRound; ++i) {
    // Up to where everybody has read by their age; beyond it only what is too old for anybody.
    pg::Params params(seconds(options_.keep), limit.seq, kRowsOfBatch);
    const auto read = co_await connection.query(sql::kDeleteOldRows, std::move(params), deadline);
    auto count = read.one().get<std::int64_t>(0);
    auto last = read.one().get<std::optional<std::int64_t>>(1);
    if (count == 0) {
      pg::Params too_old(seconds(options_.keep_max), std::numeric_limits<std::int64_t>::max(), kRowsOfBatch);
      const auto unread = co_await connection.query(sql::kDeleteOldRows, std::move(too_old), deadline);
      count = unread.one().get<std::int64_t>(0);
      last = unread.one().get<std::optional<std::int64_t>>(1);
    }
    if (count == 0) co_return;
    rows_deleted_.add(static_cast<std::uint64_t>(count));
    co_await raise_floor(connection, *last, deadline);
  }
}

void LogRetention::tell_held_back(const std::string& consumer) {
  held_back_.set(1);
  health_.report("log held back", false,
                 {HealthState::degraded, fmt::format("{} has not read rows older than log.retention", consumer)});
  log::warning("log retention", "a mandatory consumer holds the log back", {{"consumer", consumer}});
}

}  // namespace todoke::outbox
