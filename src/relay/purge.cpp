#include "relay/purge.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/attempt.hpp"
#include "pg/error.hpp"
#include "relay/purge_pages.hpp"
#include "relay/purge_sql.hpp"

namespace todoke::relay {
namespace {

// topic_usage is locked by whoever stores events, for the milliseconds of a batch: of several tries one gets
// it.
constexpr int kPurgeTries = 20;
// The work may have taken longer than the caller's deadline; the lock belongs to the session and has to go.
constexpr std::chrono::seconds kPurgeUnlockMax(10);
// Of a walk through what lost its effect, of which most belongs to other topics: some milliseconds.
constexpr std::int64_t kLostRows = 1'000;
// An event loses its effect at the beginning of a transaction that commits later; a writer waits no longer
// than that.
constexpr std::chrono::minutes kLostOutOfOrder(1);

}  // namespace

Task<bool> with_purge_lock(pg::Connection& connection, std::chrono::milliseconds wait,
                           std::function<Task<void>(pg::Connection&)> work, Deadline deadline) {
  pg::Params params(static_cast<std::int32_t>(wait.count()));
  const auto locked = co_await connection.query(sql::kTakePurgeLock, std::move(params), deadline);
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

Task<std::chrono::seconds> clock_difference(pg::Connection& connection, SystemTime at, Deadline deadline) {
  const auto rows = co_await connection.query(sql::kDatabaseClock, {}, deadline);
  co_return std::chrono::duration_cast<std::chrono::seconds>(at - rows.one().get<SystemTime>(0));
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

Task<std::optional<std::int64_t>> detach_week(pg::Connection& connection, SystemTime week,
                                              Deadline deadline) {
  pg::Params params(week);
  const auto detached = co_await attempt(connection.query(sql::kDetachWeek, std::move(params), deadline));
  if (detached) co_return detached->one().get<std::optional<std::int64_t>>(0).value_or(0);
  if (!pg::waited_for_lock(detached.error())) std::rethrow_exception(detached.error());
  co_return std::nullopt;
}

Task<std::optional<std::int64_t>> drop_detached(pg::Connection& connection, Deadline deadline) {
  const auto dropped = co_await attempt(connection.query(sql::kDropDetached, {}, deadline));
  if (dropped) co_return dropped->one().get<std::int64_t>(0);
  if (!pg::waited_for_lock(dropped.error())) std::rethrow_exception(dropped.error());
  co_return std::nullopt;
}

Task<OldestWeek> purge_oldest_week(pg::Connection& connection, SystemTime at, std::int32_t keep_days,
                                   std::int32_t regular_days, int steps_max,
                                   std::function<Task<void>()> pause, Deadline deadline) {
  OldestWeek result;
  const auto weeks = co_await old_weeks(connection, at, keep_days, deadline);
  if (weeks.empty()) co_return result;
  const auto week = weeks.front().begins;
  for (int steps = 0;; ++steps) {
    result.under_way = steps == steps_max;
    if (result.under_way) co_return result;
    const auto moved = co_await keep_some_of_week(connection, week, at, regular_days, deadline);
    if (moved == 0) break;
    result.moved += moved;
    co_await pause();
  }
  const auto events = co_await detach_week(connection, week, deadline);
  result.dropped = events.has_value();
  result.held = !events;
  if (!events) co_return result;
  const auto bytes = co_await drop_detached(connection, deadline);
  result.purged = {*events, bytes.value_or(0)};
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

Task<TopicPage> purge_lost_of_topic(pg::Connection& connection, std::string topic, TopicPlace& place,
                                    std::int64_t events_max, Deadline deadline) {
  events_max = std::min(events_max, kPurgeRows);
  pg::Params params(topic, place.lost_at, place.lost_id, kLostRows, events_max);
  const auto rows = co_await connection.query(sql::kPageOfTopicLost, std::move(params), deadline);
  const auto row = rows.one();
  auto due = due_events(row, 3);
  TopicPage page;
  page.is_last =
      row.get<std::int64_t>(0) < kLostRows && due.ids.size() < static_cast<std::size_t>(events_max);
  page.purged = co_await purge_events(connection, std::move(due), deadline);
  place.lost_at = row.get<std::optional<SystemTime>>(1).value_or(place.lost_at);
  place.lost_id = row.get<std::optional<std::string>>(2).value_or(place.lost_id);
  if (page.is_last) {
    place.lost_at = std::max(SystemTime{}, place.lost_at - kLostOutOfOrder);
    place.lost_id.clear();
  }
  co_return page;
}

Task<TopicPage> purge_oldest_of_topic(pg::Connection& connection, std::string topic, SystemTime before,
                                      TopicPlace& place, std::int64_t events_max, Deadline deadline) {
  events_max = std::min(events_max, kPurgeRows);
  pg::Params params(topic, before, place.seq, kPurgeRows, events_max);
  const auto rows = co_await connection.query(sql::kPageOfTopicAlone, std::move(params), deadline);
  const auto row = rows.one();
  auto due = due_events(row, 2);
  TopicPage page;
  page.is_last =
      row.get<std::int64_t>(0) < kPurgeRows && due.ids.size() < static_cast<std::size_t>(events_max);
  page.purged = co_await purge_events(connection, std::move(due), deadline);
  place.seq = page.is_last ? 0 : row.get<std::optional<std::int64_t>>(1).value_or(0);
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
