#include "relay/purge.hpp"

#include <chrono>
#include <utility>

#include "base/attempt.hpp"
#include "pg/error.hpp"
#include "relay/purge_pages.hpp"
#include "relay/purge_sql.hpp"

namespace todoke::relay {
namespace {

// topic_usage is locked by whoever stores events, for the milliseconds of a batch: of several tries one gets it.
constexpr int kPurgeTries = 20;
// The work may have taken longer than the caller's deadline; the lock belongs to the session and has to go.
constexpr std::chrono::seconds kPurgeUnlockMax(10);

}  // namespace

Task<bool> with_purge_lock(pg::Connection& connection, std::function<Task<void>(pg::Connection&)> work,
                           Deadline deadline) {
  const auto locked = co_await connection.query(sql::kTryPurgeLock, {}, deadline);
  if (!locked.one().get<bool>(0)) co_return false;
  const auto done = co_await attempt(work(connection));
  if (!done) {
    connection.close();
    std::rethrow_exception(done.error());
  }
  const auto unlocked =
      co_await attempt(connection.query(sql::kPurgeUnlock, {}, Deadline::after(kPurgeUnlockMax)));
  if (!unlocked) connection.close();
  co_return true;
}

Task<std::vector<OldWeek>> old_weeks(pg::Connection& connection, SystemTime at, std::int32_t keep_days,
                                     Deadline deadline) {
  pg::Params params(at, keep_days);
  const auto rows = co_await connection.query(sql::kOldWeeks, std::move(params), deadline);
  std::vector<OldWeek> weeks;
  for (const auto& row : rows) weeks.push_back({row.get<SystemTime>(0), row.get<std::int64_t>(1)});
  co_return weeks;
}

Task<std::int64_t> keep_some_of_week(pg::Connection& connection, SystemTime week, SystemTime at,
                                     std::int32_t regular_days, Deadline deadline) {
  pg::Params params(week, at, regular_days, kPurgeRows);
  const auto rows = co_await connection.query(sql::kEventsToKeep, std::move(params), deadline);
  const auto ids = rows.one().get<std::optional<std::vector<std::string>>>(0);
  if (!ids) co_return 0;
  pg::Params chosen(*ids, rows.one().get<std::vector<SystemTime>>(1));
  const auto moved = co_await connection.query(sql::kKeepEvents, std::move(chosen), deadline);
  co_return moved.one().get<std::int64_t>(0);
}

Task<std::optional<Purged>> drop_week(pg::Connection& connection, SystemTime week, Deadline deadline) {
  pg::Params params(week);
  const auto detached = co_await attempt(connection.query(sql::kDetachWeek, std::move(params), deadline));
  if (!detached) {
    if (pg::waited_for_lock(detached.error())) co_return std::nullopt;
    std::rethrow_exception(detached.error());
  }
  Purged purged;
  purged.events = detached->one().get<std::optional<std::int64_t>>(0).value_or(0);
  const auto dropped = co_await connection.query(sql::kDropDetached, {}, deadline);
  purged.bytes = dropped.one().get<std::int64_t>(0);
  co_return purged;
}

Task<OldestWeek> purge_oldest_week(pg::Connection& connection, SystemTime at, std::int32_t keep_days,
                                   std::function<Task<void>()> pause, Deadline deadline) {
  OldestWeek result;
  const auto weeks = co_await old_weeks(connection, at, keep_days, deadline);
  if (weeks.empty()) co_return result;
  const auto week = weeks.front().begins;
  while (true) {
    const auto moved = co_await keep_some_of_week(connection, week, at, keep_days, deadline);
    if (moved == 0) break;
    result.moved += moved;
    co_await pause();
  }
  const auto dropped = co_await drop_week(connection, week, deadline);
  result.dropped = dropped.has_value();
  result.held = !dropped;
  result.purged = dropped.value_or(Purged{});
  co_return result;
}

Task<Purged> purge_events(pg::Connection& connection, DueEvents due, Deadline deadline) {
  if (due.ids.empty()) co_return Purged{};
  for (int tries = 1;; ++tries) {
    pg::Params params(due.ids, due.times, due.lifetimes);
    const auto gone = co_await attempt(connection.query(sql::kPurgeEvents, std::move(params), deadline));
    if (gone) {
      const auto row = gone->one();
      co_return Purged{row.get<std::int64_t>(0), row.get<std::int64_t>(1)};
    }
    if (tries == kPurgeTries || !pg::waited_for_lock(gone.error())) std::rethrow_exception(gone.error());
  }
}

DueEvents due_events(const pg::Row& row, std::size_t first_column) {
  DueEvents due;
  due.ids = row.get<std::optional<std::vector<std::string>>>(first_column).value_or(due.ids);
  due.times = row.get<std::optional<std::vector<SystemTime>>>(first_column + 1).value_or(due.times);
  due.lifetimes = row.get<std::optional<std::vector<std::string>>>(first_column + 2).value_or(due.lifetimes);
  return due;
}

Task<TopicPage> purge_oldest_of_topic(pg::Connection& connection, std::string topic, SystemTime before,
                                      std::int64_t after_seq, std::int64_t events_max, Deadline deadline) {
  pg::Params params(topic, before, after_seq, kPurgeRows, events_max);
  const auto rows = co_await connection.query(sql::kPageOfTopicAlone, std::move(params), deadline);
  TopicPage page;
  page.is_last = rows.one().get<std::int64_t>(0) < kPurgeRows;
  page.last_seq = rows.one().get<std::optional<std::int64_t>>(1).value_or(after_seq);
  page.purged = co_await purge_events(connection, due_events(rows.one(), 2), deadline);
  co_return page;
}

Task<Purged> usage_of_topic(pg::Connection& connection, std::string topic, Deadline deadline) {
  pg::Params params(topic);
  const auto rows = co_await connection.query(sql::kTopicUsage, std::move(params), deadline);
  co_return Purged{rows.one().get<std::int64_t>(0), rows.one().get<std::int64_t>(1)};
}

Task<std::int64_t> recount_usage(pg::Connection& connection, Deadline deadline) {
  const auto wrong = co_await connection.query(sql::kRecountUsage, {}, deadline);
  co_return wrong.one().get<std::int64_t>(0);
}

}  // namespace todoke::relay
