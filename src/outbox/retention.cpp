#include "outbox/retention.hpp"

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "outbox/audit.hpp"
#include "outbox/retention_sql.hpp"
#include "pg/error.hpp"

namespace todoke::outbox {
namespace {

constexpr std::chrono::minutes kRoundMax(10);
constexpr std::int64_t kRowsOfBatch = 5'000;
constexpr int kBatchesOfRound = 200;  // a million rows; the next round goes on

void tell_lost(const std::string& consumer) {
  log::error("log retention", "a consumer has lost rows and needs a rebuild (`todoke consumers rebuild`)",
             {{"consumer", consumer}});
}

}  // namespace

LogRetention::LogRetention(const Executor& executor, RetentionOptions options, pg::Pool& pool,
                           HealthBoard& health, metrics::Registry& registry)
    : PeriodicService(
          executor,
          {.name = "log retention", .failed = "put off", .every = options.every, .begins_at_once = true},
          registry),
      options_(options),
      pool_(pool),
      health_(health),
      rows_deleted_(registry.counter("todoke_log_rows_deleted_total",
                                     "Rows that retention took from the log one by one.")),
      partitions_dropped_(
          registry.counter("todoke_log_partitions_dropped_total", "Partitions that retention dropped.")),
      bytes_(registry.gauge("todoke_log_bytes", "Size of the log with its indexes.")),
      held_back_(
          registry.gauge("todoke_log_held_back", "1: a mandatory consumer keeps old rows from going.")) {}

void LogRetention::set_bounds(const RetentionOptions& options) {
  options_.keep = options.keep;
  options_.keep_max = options.keep_max;
  options_.bytes_max = options.bytes_max;
}

Task<void> LogRetention::run() {
  co_await PeriodicService::run();
  health_.forget("log held back");
  health_.forget("log held open");
}

Task<void> LogRetention::round(RoundCause /*cause*/) {
  const auto deadline = Deadline::after(kRoundMax);
  const auto lease = co_await pool_.acquire(deadline);
  const auto locked = co_await lease->query(sql::kTryRetentionLock, {}, deadline);
  if (!locked.one().get<bool>(0)) co_return;
  const auto emptied = co_await attempt(empty_and_unlock(*lease, deadline));
  if (emptied) co_return;
  lease->close();  // the lock goes with the session
  std::rethrow_exception(emptied.error());
}

Task<void> LogRetention::empty_and_unlock(pg::Connection& connection, Deadline deadline) {
  co_await empty_log(connection, deadline);
  co_await connection.query(sql::kRetentionUnlock, {}, deadline);
}

Task<void> LogRetention::empty_log(pg::Connection& connection, Deadline deadline) {
  held_back_.set(0);
  // Consumers that had locked their offset in the round that took their rows.
  const auto lost = co_await connection.query(sql::kMarkLost, {std::int64_t{1}}, deadline);
  for (const auto& row : lost) tell_lost(row.get<std::string>(0));
  co_await connection.query(sql::kNoteTimes, {}, deadline);
  const bool goes_on = co_await drop_partitions(connection, deadline);
  tell_held_open(!goes_on);
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

Task<bool> LogRetention::drop_partitions(pg::Connection& connection, Deadline deadline) {
  pg::Params params(seconds_in(options_.keep), seconds_in(options_.keep_max));
  const auto old = co_await connection.query(sql::kOldPartitions, std::move(params), deadline);
  auto bytes = co_await measure(connection, deadline);
  for (const auto& row : old) {
    const auto limit = co_await bound(connection, deadline);
    const bool is_read = limit.seq >= row.get<std::int64_t>("last_seq");
    if (!is_read && !row.get<bool>("beyond_max") && bytes <= options_.bytes_max) {
      tell_held_back(limit.consumer);
      break;
    }
    const bool done = co_await drop(connection, row, deadline);
    if (!done) co_return false;
    bytes = co_await measure(connection, deadline);
    if (stop_asked()) break;
  }
  co_return true;
}

Task<std::int64_t> LogRetention::measure(pg::Connection& connection, Deadline deadline) {
  const auto size = co_await connection.query(sql::kLogBytes, {}, deadline);
  const auto bytes = size.one().get<std::int64_t>(0);
  bytes_.set(static_cast<double>(bytes));
  co_return bytes;
}

Task<bool> LogRetention::drop(pg::Connection& connection, pg::Row partition, Deadline deadline) {
  const auto first_seq = partition.get<std::int64_t>("first_seq");
  const auto last_seq = partition.get<std::int64_t>("last_seq");
  const auto table = partition.get<std::string>("table_name");
  // Marks the consumers before it drops: one that looks in between sees that its rows are gone, and not an
  // empty log.
  co_await raise_floor(connection, last_seq, deadline);
  pg::Params params(first_seq);
  const auto dropped =
      co_await attempt(connection.query(sql::kDropLogPartition, std::move(params), deadline));
  if (!dropped) {
    if (pg::waited_for_lock(dropped.error())) co_return false;
    std::rethrow_exception(dropped.error());
  }
  partitions_dropped_.add();
  log::info("log retention", "a partition was dropped", {{"table", table}, {"until", last_seq}});
  co_return true;
}

Task<void> LogRetention::raise_floor(pg::Connection& connection, std::int64_t dropped_until,
                                     Deadline deadline) {
  auto batch = co_await cut_ranges(connection, dropped_until, deadline);
  batch.add(sql::kRaiseFloor, {dropped_until});
  batch.add(sql::kMarkLost, {std::int64_t{0}});
  const auto results = co_await connection.run(std::move(batch), deadline);
  for (const auto& row : results.back()) tell_lost(row.get<std::string>(0));
}

Task<pg::Batch> LogRetention::cut_ranges(pg::Connection& connection, std::int64_t until, Deadline deadline) {
  std::vector<std::string> consumers;
  std::vector<std::int64_t> froms;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> hashes;
  std::map<std::int64_t, RowDigest> digests;  // most consumers are cut at the same place
  const auto ranges = co_await connection.query(sql::kRangesToCut, {until}, deadline);
  for (const auto& row : ranges) {
    const auto from = row.get<std::int64_t>("from_seq");
    const bool torn = row.get<bool>("torn");
    if (!torn && !digests.contains(from)) {
      const auto digest = co_await digest_of_log(connection, from, until, deadline);
      digests[from] = digest;
    }
    consumers.push_back(row.get<std::string>("consumer"));
    froms.push_back(from);
    counts.push_back(torn ? -1 : digests[from].count);
    hashes.push_back(torn ? 0 : static_cast<std::int64_t>(digests[from].hash));
  }
  pg::Batch batch;
  batch.add(sql::kCutRanges, pg::Params(until, consumers, froms, counts, hashes));
  co_return batch;
}

Task<void> LogRetention::delete_rows(pg::Connection& connection, Deadline deadline) {
  const auto limit = co_await bound(connection, deadline);
  for (int i = 0; i < kBatchesOfRound && !stop_asked(); ++i) {
    // Up to here every mandatory consumer has read, so rows go by `keep`; beyond it they go by `keep_max`.
    auto count = co_await delete_batch(connection, options_.keep, limit.seq, deadline);
    if (count == 0) {
      count = co_await delete_batch(connection, options_.keep_max, std::numeric_limits<std::int64_t>::max(),
                                    deadline);
    }
    if (count == 0) break;
    rows_deleted_.add(static_cast<std::uint64_t>(count));
  }
  pg::Params params(seconds_in(options_.keep), limit.seq);
  const auto kept = co_await connection.query(sql::kOldRowsAfter, std::move(params), deadline);
  if (kept.one().get<bool>(0)) tell_held_back(limit.consumer);
}

Task<std::int64_t> LogRetention::delete_batch(pg::Connection& connection, std::chrono::milliseconds keep,
                                              std::int64_t until_seq, Deadline deadline) {
  pg::Params params(seconds_in(keep), until_seq, kRowsOfBatch);
  const auto old = co_await connection.query(sql::kOldRowsEnd, std::move(params), deadline);
  const auto until = old.one().get<std::int64_t>(0);
  if (until == 0) co_return 0;
  auto batch = co_await cut_ranges(connection, until, deadline);
  batch.add(sql::kDeleteOldRows, pg::Params(seconds_in(keep), until));
  const auto results = co_await connection.run(std::move(batch), deadline);
  const auto deleted = results.back().one();
  for (const auto& consumer : deleted.get<std::vector<std::string>>(1)) tell_lost(consumer);
  co_return deleted.get<std::int64_t>(0);
}

Task<void> LogRetention::delete_effects(pg::Connection& connection, Deadline deadline) {
  for (int i = 0; i < kBatchesOfRound && !stop_asked(); ++i) {
    pg::Params params(kRowsOfBatch);
    const auto deleted = co_await connection.query(sql::kDeleteOldEffects, std::move(params), deadline);
    if (deleted.affected() == 0) co_return;
  }
}

void LogRetention::tell_held_open(bool is_held) {
  if (!is_held) {
    health_.forget("log held open");
    return;
  }
  health_.report(
      "log held open", false,
      {HealthState::degraded,
       "a transaction that has read the log stays open (pg_stat_activity): old partitions can't go"});
  log::warning("log retention",
               "an open transaction keeps an old partition from going; the next round goes on");
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
