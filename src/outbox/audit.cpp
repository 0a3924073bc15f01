#include "outbox/audit.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/hash_table.hpp"
#include "outbox/audit_sql.hpp"

namespace todoke::outbox {
namespace {

constexpr std::chrono::minutes kPageMax(5);
// Both tables are read whole: a hundred million rows take some minutes.
constexpr std::chrono::hours kLossesMax(2);
constexpr std::chrono::minutes kRangeMax(60);
constexpr std::int64_t kPageRows = 20'000;
constexpr std::int64_t kListedMax = 1'000;

using Tell = std::function<void(const std::string&)>;

Task<RowDigest> recount(pg::Connection& connection, std::int64_t from, std::int64_t to) {
  return digest_of_log(connection, from, to, Deadline::after(kRangeMax));
}

// Whether retention has taken rows after `from` by now.
Task<bool> is_cut(pg::Connection& connection, std::int64_t from) {
  const auto bounds = co_await connection.query(sql::kLogBounds, {}, Deadline::after(kPageMax));
  co_return from < bounds.one().get<std::int64_t>(0);
}

// Nothing was recorded between two ranges, so the log must have no row there.
Task<void> check_gap(pg::Connection& connection, std::int64_t from, std::int64_t to, ConsumerAudit& result) {
  if (from >= to) co_return;
  const auto digest = co_await recount(connection, from, to);
  if (digest.count > 0) result.differences.push_back({from, to, digest.count, -1});
}

Task<ConsumerAudit> audit_consumer(pg::Connection& connection, std::string name, std::int64_t last_seq,
                                   std::int64_t dropped_until) {
  ConsumerAudit result;
  result.name = name;
  result.last_seq = last_seq;
  pg::Params params(name);
  const auto ranges =
      co_await connection.query(sql::kRecordedRanges, std::move(params), Deadline::after(kPageMax));
  result.keeps_record = !ranges.empty();
  if (ranges.empty()) co_return result;
  auto at = std::max(dropped_until, ranges[0].get<std::int64_t>(0));
  for (const auto& range : ranges) {
    const auto from = range.get<std::int64_t>(0);
    const auto to = range.get<std::int64_t>(1);
    const auto recorded = range.get<std::int64_t>(2);
    co_await check_gap(connection, at, from, result);
    at = std::max(at, to);
    const auto digest = co_await recount(connection, from, to);
    if (recorded < 0) {
      result.skipped += digest.count;
      continue;
    }
    const bool same =
        digest.count == recorded && static_cast<std::int64_t>(digest.hash) == range.get<std::int64_t>(3);
    if (!same && digest.count <= recorded) {
      const bool cut = co_await is_cut(connection, from);
      if (cut) {
        result.skipped += digest.count;
        continue;
      }
    }
    result.rows += digest.count;
    if (!same) result.differences.push_back({from, to, digest.count, recorded});
  }
  co_await check_gap(connection, at, last_seq, result);
  co_return result;
}

// What operators have removed, by event: the seq of the last delete.
using Removals = HashMap<std::string, std::int64_t>;

// The log has no index for events: it is read once for all of them. About 150 bytes of memory for each.
Task<Removals> read_removals(pg::Connection& connection) {
  Removals removals;
  for (std::int64_t from = 0;;) {
    pg::Params params(from, kPageRows);
    const auto rows = co_await connection.query(sql::kRemovals, std::move(params), Deadline::after(kPageMax));
    for (const auto& row : rows) {
      from = row.get<std::int64_t>(0);
      removals[row.get<std::string>(1)] = from;
    }
    if (rows.size() < static_cast<std::size_t>(kPageRows)) co_return removals;
  }
}

// Upserts of (from, to] whose event is gone: it was purged, or an operator has removed it
// (purged), or it is lost.
Task<void> check_upserts(pg::Connection& connection, std::int64_t from, std::int64_t to,
                         std::optional<Removals>& removals, LogAudit& result) {
  pg::Params params(from, to);
  const auto upserts =
      co_await connection.query(sql::kUpsertsWithoutEvent, std::move(params), Deadline::after(kPageMax));
  for (const auto& row : upserts) {
    const auto seq = row.get<std::int64_t>(0);
    bool is_purged = row.get<bool>(2);
    if (!is_purged) {
      if (!removals) removals = co_await read_removals(connection);
      const auto removal = removals->find(row.get<std::string>(1));
      is_purged = removal != removals->end() && removal->second > seq;
    }
    if (is_purged) {
      ++result.purged;
    } else if (std::ssize(result.upserts_without_event) < kListedMax) {
      result.upserts_without_event.push_back(seq);
    }
  }
}

// Events whose row of the log is gone or was never there.
Task<void> check_events(pg::Connection& connection, Tell tell, LogAudit& result) {
  std::string after;
  for (std::int64_t done = 0;;) {
    pg::Params params(after, kPageRows, result.dropped_until, result.head);
    const auto page =
        co_await connection.query(sql::kEventsWithoutRow, std::move(params), Deadline::after(kPageMax));
    const auto row = page.one();
    for (auto& id : row.get<std::vector<std::string>>(2)) {
      if (std::ssize(result.events_without_row) < kListedMax)
        result.events_without_row.push_back(std::move(id));
    }
    const auto count = row.get<std::int64_t>(1);
    done += count;
    tell(fmt::format("events: {}", done));
    if (count < kPageRows) co_return;
    after = row.get<std::string>(0);
  }
}

// Events that lost their effect behind the log's back: consumers still show them.
Task<void> check_losses(pg::Connection& connection, Tell tell, LogAudit& result) {
  tell("events that have lost their effect");
  const auto rows =
      co_await connection.query(sql::kLossesWithoutRow, {kListedMax}, Deadline::after(kLossesMax));
  for (const auto& row : rows) result.losses_without_row.push_back(row.get<std::string>(0));
}

Task<LogAudit> audit_log(pg::Connection& connection, Tell tell) {
  LogAudit result;
  const auto bounds = co_await connection.query(sql::kLogBounds, {}, Deadline::after(kPageMax));
  result.dropped_until = bounds.one().get<std::int64_t>(0);
  result.head = bounds.one().get<std::int64_t>(1);
  std::optional<Removals> removals;
  for (auto from = result.dropped_until; from < result.head;) {
    pg::Params params(from, result.head, kPageRows);
    const auto page = co_await connection.query(sql::kPageEnd, std::move(params), Deadline::after(kPageMax));
    const auto to = page.one().get<std::optional<std::int64_t>>(0).value_or(result.head);
    co_await check_upserts(connection, from, to, removals, result);
    tell(fmt::format("log: seq {} of {}", to, result.head));
    from = to;
  }
  co_await check_events(connection, tell, result);
  co_await check_losses(connection, tell, result);
  co_return result;
}

}  // namespace

Task<RowDigest> digest_of_log(pg::Connection& connection, std::int64_t from, std::int64_t to,
                              Deadline deadline) {
  RowDigest digest;
  for (;;) {
    pg::Params params(from, to, kPageRows);
    const auto rows = co_await connection.query(sql::kRowsBetween, std::move(params), deadline);
    for (const auto& row : rows) {
      from = row.get<std::int64_t>(0);
      digest.add(from, row.get<std::string_view>(1), row.get<std::string_view>(2),
                 row.get<std::string_view>(3));
    }
    if (rows.size() < static_cast<std::size_t>(kPageRows)) co_return digest;
  }
}

bool Audit::is_clean() const {
  return log.upserts_without_event.empty() && log.events_without_row.empty() &&
         log.losses_without_row.empty() &&
         std::all_of(consumers.begin(), consumers.end(), [](const auto& c) { return c.differences.empty(); });
}

Task<Audit> audit(pg::Connection& connection, Tell progress) {
  Audit result;
  result.log = co_await audit_log(connection, progress);
  const auto consumers = co_await connection.query(sql::kAuditedConsumers, {}, Deadline::after(kPageMax));
  for (const auto& row : consumers) {
    const auto name = row.get<std::string>(0);
    progress(fmt::format("consumer {}", name));
    auto audited =
        co_await audit_consumer(connection, name, row.get<std::int64_t>(1), result.log.dropped_until);
    result.consumers.push_back(std::move(audited));
  }
  co_return result;
}

}  // namespace todoke::outbox
