// The reading half of admin.hpp.
#include <utility>

#include <fmt/format.h>

#include "orders/admin/admin.hpp"
#include "orders/admin/admin_sql.hpp"
#include "orders/core/gauges.hpp"
#include "pg/transaction.hpp"

namespace todoke::orders {
namespace {

constexpr std::int64_t kLinesMax = 1'000;
constexpr double kWorkerGoneAfterSeconds = kWorkerGoneAfter.count();
constexpr std::string_view kMasked = "******** (--reveal shows it)";

// The beginning of a key's hash, as long as it is shown in lists or longer.
bool is_hash(std::string_view text) {
  constexpr std::size_t kShown = 12;
  return text.size() >= kShown && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Task<std::vector<OrderLine>> list_orders(pg::Connection& connection, ListFilter filter, Deadline deadline) {
  pg::Params params(filter.status, filter.in_doubt, filter.instrument, filter.adapter, filter.since,
                    filter.until, std::min(filter.most, kLinesMax));
  const auto rows = co_await connection.query(sql::kAdminList, std::move(params), deadline);
  std::vector<OrderLine> lines;
  for (const auto& row : rows) {
    lines.push_back({row.get<std::int64_t>(0), row.get<std::string>(1), row.get<std::string>(2),
                     row.get<std::int32_t>(3), row.get<bool>(4), row.get<std::string>(5), row.get<double>(6),
                     row.get<double>(7), row.get<std::string>(8)});
  }
  co_return lines;
}

Task<Expected<std::int64_t>> find_order(pg::Connection& connection, std::string which, Deadline deadline) {
  pg::Params params(which);
  const auto named = co_await connection.query(sql::kAdminFind, params, deadline);
  if (!named.empty()) co_return named.one().get<std::int64_t>(0);
  if (is_hash(which)) {
    const auto hashed = co_await connection.query(sql::kAdminFindHash, std::move(params), deadline);
    if (hashed.size() > 1) co_return refuse("several orders have a key with such a hash: say more of it");
    if (!hashed.empty()) co_return hashed.one().get<std::int64_t>(0);
  }
  co_return refuse("there is no such order, neither in the outbox nor in the archive");
}

Task<OrderDetails> show_order(pg::Connection& connection, std::int64_t id, bool reveal, std::string actor,
                              Deadline deadline) {
  auto transaction = co_await pg::begin(connection, deadline);
  OrderDetails details;
  pg::Params of(id);
  const auto rows = co_await connection.query(sql::kAdminShow, of, deadline);
  const auto row = rows.one();
  const auto add = [&](std::string_view name, std::string value) {
    details.fields.emplace_back(name, std::move(value));
  };
  add("id", std::to_string(id));
  add("key", reveal ? row.get<std::string>("idempotency_key") : std::string(kMasked));
  for (const auto* name : {"key_hash", "status"}) add(name, row.get<std::string>(name));
  add("attempts", std::to_string(row.get<std::int32_t>("attempts")));
  add("claim_no", std::to_string(row.get<std::int64_t>("claim_no")));
  add("in_doubt", row.get<bool>("in_doubt") ? "yes" : "no");
  add("code", row.get<std::string>("code"));
  // It may hold a broker's own words.
  const auto message = row.get<std::string>("message");
  add("message", message.empty() || reveal ? message : std::string(kMasked));
  for (const auto* name : {"locked_by", "locked_at", "created_at", "updated_at", "next_run_at", "archived_at",
                           "request_digest"}) {
    add(name, row.get<std::string>(name));
  }
  add("order", reveal ? row.get<std::string>("document") : std::string(kMasked));
  for (const auto* name : {"ledger_status", "expires_at"}) add(name, row.get<std::string>(name));
  add("http_status", row.get<std::optional<std::string>>("http_status").value_or(""));
  const auto result = row.get<std::optional<std::string>>("result").value_or("");
  add("result", result.empty() || reveal ? result : std::string(kMasked));

  pg::Params tries_of(id, kLinesMax);
  const auto tries = co_await connection.query(sql::kAdminTries, tries_of, deadline);
  for (const auto& t : tries) {
    const auto unread = t.get<std::string>("note");
    details.tries.push_back(fmt::format("claim {}  {} to {}  {}{}{}  {} {}  {}", t.get<std::int64_t>(0),
                                        t.get<std::string>(1), t.get<std::string>(2), t.get<std::string>(3),
                                        t.get<bool>(7) ? " (fenced)" : "",
                                        unread.empty() ? "" : fmt::format(" (could not be read: {})", unread),
                                        t.get<std::string>(4), t.get<std::string>(5), t.get<std::string>(6)));
  }
  const auto audit = co_await connection.query(sql::kAdminAuditOf, tries_of, deadline);
  for (const auto& a : audit) {
    details.audit.push_back(fmt::format("{}  {}  {}  {}", a.get<std::string>(0), a.get<std::string>(1),
                                        a.get<std::string>(2), a.get<std::string>(3)));
  }
  if (reveal) {
    pg::Params audited(actor, row.get<std::string>("key_hash"), id);
    co_await connection.query(sql::kAuditReveal, std::move(audited), deadline);
  }
  co_await transaction.commit(deadline);
  co_return details;
}

Task<OrderStats> order_stats(pg::Connection& connection, Deadline deadline) {
  OrderStats stats;
  const auto counts = co_await connection.query(sql::kOrderCounts, {}, deadline);
  for (const auto& row : counts) stats.counts.emplace_back(row.get<std::string>(0), row.get<std::int64_t>(1));
  const auto gauges = co_await read_gauges(connection, deadline);
  stats.oldest_pending_seconds = gauges.oldest_pending_seconds;
  stats.in_doubt = gauges.in_doubt;
  stats.workers_alive = gauges.workers;
  pg::Params most(kLinesMax);
  const auto workers = co_await connection.query(sql::kListWorkers, most, deadline);
  for (const auto& row : workers) {
    const auto seen_ago = row.get<double>(2);
    stats.workers.push_back(fmt::format("{}  {}  seen {:.0f} s ago{}", row.get<std::string>(0),
                                        row.get<std::string>(1), seen_ago,
                                        seen_ago < kWorkerGoneAfterSeconds ? "" : ": gone"));
    const auto breaker = row.get<std::string>(3);
    if (seen_ago < kWorkerGoneAfterSeconds && breaker != "closed") {
      stats.breakers.push_back(
          fmt::format("{}  {}  {}", breaker, row.get<std::string>(0), row.get<std::string>(1)));
    }
  }
  const auto halts = co_await connection.query(sql::kListHalts, most, deadline);
  for (const auto& row : halts) {
    stats.halts.push_back(fmt::format("adapter {}  instrument {}{}  by {} since {}  {}",
                                      row.get<std::string>(0), row.get<std::string>(1),
                                      row.get<bool>(2) ? "  intake refused" : "", row.get<std::string>(3),
                                      row.get<std::string>(4), row.get<std::string>(5)));
  }
  co_return stats;
}

}  // namespace todoke::orders
