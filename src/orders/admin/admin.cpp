#include "orders/admin/admin.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "orders/admin/admin_sql.hpp"
#include "orders/core/exec_result.hpp"
#include "orders/core/gauges.hpp"
#include "orders/core/order.hpp"
#include "pg/transaction.hpp"

namespace todoke::orders {
namespace {

constexpr std::int64_t kLinesMax = 1'000;
constexpr double kWorkerGoneAfterSeconds = kWorkerGoneAfter.count();
constexpr std::string_view kMasked = "******** (--reveal shows it)";

// At least as many digits of a key's hash as lists show.
bool is_hash(std::string_view text) {
  constexpr std::size_t kShown = 12;
  return text.size() >= kShown && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A row as it was locked.
struct Locked {
  std::string key;
  std::string status;
  bool in_doubt = false;
  bool is_live = false;
  std::string document;
  std::string before;
  std::string adapter;  // empty: none has tried it
  std::optional<std::string> ledger;
  bool ledger_is_same = true;
};

// Holds until the end of the transaction: this file audits its own changes, so the triggers for changes by
// hand must not.
Task<void> act_as(pg::Connection& connection, std::string actor, Deadline deadline) {
  pg::Params params(actor);
  co_await connection.query(sql::kActAs, std::move(params), deadline);
}

Task<Expected<Locked>> lock(pg::Connection& connection, const Change& change, Deadline deadline) {
  co_await act_as(connection, change.actor, deadline);
  pg::Params params(change.id, std::chrono::duration<double>(change.lease).count());
  const auto rows = co_await connection.query(sql::kLockOrder, std::move(params), deadline);
  if (rows.empty())
    co_return refuse(
        fmt::format("order {} is over and archived: nothing can be changed any more", change.id));
  const auto row = rows.one();
  Locked locked;
  locked.key = row.get<std::string>(0);
  locked.status = row.get<std::string>(1);
  locked.in_doubt = row.get<bool>(3);
  locked.document = row.get<std::string>(4);
  locked.is_live = row.get<bool>(5);
  locked.before = row.get<std::string>(6);
  locked.adapter = row.get<std::string>(7);
  pg::Params id(change.id);
  const auto ledger = co_await connection.query(sql::kLockLedger, std::move(id), deadline);
  if (!ledger.empty()) {
    locked.ledger = ledger.one().get<std::string>(0);
    locked.ledger_is_same = ledger.one().get<bool>(1);
  }
  co_return locked;
}

Task<void> audit(pg::Connection& connection, const Change& change, std::string action, const Locked& locked,
                 Deadline deadline) {
  pg::Params params(change.actor, action, change.id, locked.before, change.reason);
  co_await connection.query(sql::kAuditChange, std::move(params), deadline);
}

std::optional<Refusal> refuse_live(const Locked& locked, const Change& change) {
  if (!locked.is_live || change.force) return std::nullopt;
  return Refusal{
      fmt::format("a worker holds order {} and may be sending it right now: wait until it is settled or its "
                  "lease has lapsed, or use --force, which fences the worker",
                  change.id)};
}

// Ends a locked order: ledger first, then the row.
Task<void> end(pg::Connection& connection, std::int64_t id, const ExecResult& result, bool in_doubt,
               std::string message, Deadline deadline) {
  const bool ok = result.status == ExecStatus::ok;
  const std::string ledger_status = ok ? "succeeded" : "failed";
  const std::string status = ok ? "succeeded" : "aborted";
  std::optional<std::string> code;
  std::optional<std::string> text;
  if (!ok) {
    code = result.reason_code;
    text = std::move(message);
  }
  pg::Params ledger(id, ledger_status, static_cast<std::int32_t>(http_status_of(result.reason_code)),
                    result_digest(result), to_json(result));
  co_await connection.query(sql::kEndLedger, std::move(ledger), deadline);
  pg::Params row(id, status, code, text, in_doubt);
  co_await connection.query(sql::kEndOrder, std::move(row), deadline);
}

// Completes the result with the fields of the order and the sums of its fills. The fills must fit the order.
Expected<void> complete(ExecResult& result, const Locked& locked) {
  result.idempotency_key = locked.key;
  result.completed_at = std::chrono::system_clock::now();
  if (result.broker.name.empty()) result.broker.name = locked.adapter;
  const auto order = parse_order(locked.document);
  if (!order) return {};
  if (result.fills.empty() && !result.executed_qty.is_zero()) {
    return refuse("executed_qty is the sum of the fills: give them, as fills: [{px, qty, ts}]");
  }
  if (result.status == ExecStatus::ok) sum_fills(result, *order);
  if (result.executed_qty > order->qty) {
    return refuse(fmt::format("the fills have a qty of {} together, the order of {}",
                              result.executed_qty.text(), order->qty.text()));
  }
  if (result.order_id.empty()) result.order_id = order->order_id.value_or(locked.key);
  result.instrument = order->instrument;
  result.side = to_string(order->side);
  result.requested_at = order->requested_at;
  result.trace_id = order->trace_id;
  return {};
}

std::string halt_json(const HaltChange& change) {
  JsonWriter json;
  json.begin_object().member("adapter", std::string_view(change.adapter));
  json.member("instrument", std::string_view(change.instrument));
  json.member("intake_refused", change.refuse_intake).end_object();
  return std::move(json).text();
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
                     row.get<double>(7), row.get<std::string>(8), row.get<std::string>(9)});
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

Task<Expected<void>> requeue_order(pg::Connection& connection, Change change, Deadline deadline) {
  auto transaction = co_await pg::begin(connection, deadline);
  const auto locked = co_await lock(connection, change, deadline);
  if (!locked) co_return refuse(locked.error().message);
  if (locked->status != "aborted" && locked->status != "failed") {
    co_return refuse(
        fmt::format("order {} is {}: only one that is aborted or waits for another try can be requeued",
                    change.id, locked->status));
  }
  if (!locked->ledger_is_same) {
    co_return refuse(
        fmt::format("the key of order {} belongs to an order with another content: it would be aborted again",
                    change.id));
  }
  pg::Params params(change.id);
  co_await connection.query(sql::kRequeueOrder, std::move(params), deadline);
  co_await audit(connection, change, "requeue", *locked, deadline);
  co_await connection.query(sql::kTellWorkers, {}, deadline);
  co_await transaction.commit(deadline);
  co_return Expected<void>();
}

Task<Requeued> requeue_orders(pg::Connection& connection, ListFilter filter, Change change,
                              Deadline deadline) {
  auto transaction = co_await pg::begin(connection, deadline);
  co_await act_as(connection, change.actor, deadline);
  Requeued requeued;
  pg::Params wanted(filter.status, filter.in_doubt, filter.instrument, filter.adapter, filter.since,
                    filter.until);
  if (!filter.in_doubt) {
    const auto doubtful = co_await connection.query(sql::kCountDoubtful, wanted, deadline);
    requeued.doubtful = doubtful.one().get<std::int64_t>(0);
  }
  wanted.add(filter.most).add(change.actor).add(change.reason);
  const auto rows = co_await connection.query(sql::kRequeueMatching, std::move(wanted), deadline);
  for (const auto& row : rows) requeued.ids.push_back(row.get<std::int64_t>(0));
  co_await connection.query(sql::kTellWorkers, {}, deadline);
  co_await transaction.commit(deadline);
  co_return requeued;
}

Task<Expected<void>> release_order(pg::Connection& connection, Change change, Deadline deadline) {
  auto transaction = co_await pg::begin(connection, deadline);
  const auto locked = co_await lock(connection, change, deadline);
  if (!locked) co_return refuse(locked.error().message);
  if (locked->status != "sending") {
    co_return refuse(fmt::format("order {} is {}: no worker holds it", change.id, locked->status));
  }
  if (const auto refused = refuse_live(*locked, change)) co_return refuse(refused->message);
  // A pending row with a settled failure counts as requeued.
  if (locked->ledger == "failed" && locked->ledger_is_same) {
    co_return refuse(fmt::format(
        "order {} has failed by its ledger, and a worker will end it so: requeue it then", change.id));
  }
  pg::Params params(change.id);
  co_await connection.query(sql::kReleaseOrder, std::move(params), deadline);
  co_await audit(connection, change, "release", *locked, deadline);
  co_await connection.query(sql::kTellWorkers, {}, deadline);
  co_await transaction.commit(deadline);
  co_return Expected<void>();
}

Task<Expected<void>> abort_order(pg::Connection& connection, Change change, Deadline deadline) {
  auto transaction = co_await pg::begin(connection, deadline);
  const auto locked = co_await lock(connection, change, deadline);
  if (!locked) co_return refuse(locked.error().message);
  if (locked->status == "succeeded" || locked->status == "aborted" ||
      (locked->ledger == "succeeded" && locked->ledger_is_same)) {
    co_return refuse(fmt::format("order {} is settled already", change.id));
  }
  if (const auto refused = refuse_live(*locked, change)) co_return refuse(refused->message);
  const bool in_doubt = locked->in_doubt || locked->status == "sending";
  if (locked->ledger_is_same) {
    ExecResult result;
    result.status = ExecStatus::error;
    result.reason_code = reason::kAbortedByOperator;
    if (in_doubt) result.warnings.emplace_back(warning::kInDoubt);
    if (const auto fits = complete(result, *locked); !fits) co_return refuse(fits.error().message);
    co_await end(connection, change.id, result, in_doubt, change.reason.value_or("aborted by an operator"),
                 deadline);
  } else {
    // The ledger row belongs to another order: end this one as a worker would.
    pg::Params row(change.id, "aborted", reason::kIdempotencyConflict,
                   "the key belongs to an order with another content", in_doubt);
    co_await connection.query(sql::kEndOrder, std::move(row), deadline);
  }
  co_await audit(connection, change, "abort", *locked, deadline);
  co_await transaction.commit(deadline);
  co_return Expected<void>();
}

Task<Expected<void>> settle_order(pg::Connection& connection, Change change, ExecResult result,
                                  Deadline deadline) {
  auto transaction = co_await pg::begin(connection, deadline);
  const auto locked = co_await lock(connection, change, deadline);
  if (!locked) co_return refuse(locked.error().message);
  if (locked->status == "succeeded" || locked->ledger == "succeeded") {
    co_return refuse(fmt::format("order {} has succeeded, and that is final", change.id));
  }
  if (!locked->ledger_is_same) {
    co_return refuse(fmt::format("the key of order {} belongs to an order with another content", change.id));
  }
  if (const auto refused = refuse_live(*locked, change)) co_return refuse(refused->message);
  if (result.status == ExecStatus::error && !is_known_reason(result.reason_code)) {
    co_return refuse(
        "an outcome with the status error needs a reason_code: BROKER_REJECTED, BROKER_TIMEOUT, BROKER_DOWN, "
        "VALIDATION_ERROR, INTERNAL_ERROR or ORDER_EXPIRED");
  }
  if (result.status == ExecStatus::ok && !result.reason_code.empty()) {
    co_return refuse("an outcome with the status ok has no reason_code");
  }
  if (const auto fits = complete(result, *locked); !fits) co_return refuse(fits.error().message);
  co_await end(connection, change.id, result, false, change.reason.value_or("settled by an operator"),
               deadline);
  co_await audit(connection, change, "settle", *locked, deadline);
  co_await transaction.commit(deadline);
  co_return Expected<void>();
}

Task<bool> halt_orders(pg::Connection& connection, HaltChange change, Deadline deadline) {
  auto transaction = co_await pg::begin(connection, deadline);
  co_await act_as(connection, change.actor, deadline);
  pg::Params halt(change.adapter, change.instrument, change.refuse_intake, change.actor, change.reason);
  const auto rows = co_await connection.query(sql::kUpsertHalt, std::move(halt), deadline);
  pg::Params audited(change.actor, "halt", halt_json(change), change.reason);
  co_await connection.query(sql::kAuditAction, std::move(audited), deadline);
  co_await transaction.commit(deadline);
  co_return rows.one().get<bool>(0);
}

Task<bool> resume_orders(pg::Connection& connection, HaltChange change, Deadline deadline) {
  auto transaction = co_await pg::begin(connection, deadline);
  co_await act_as(connection, change.actor, deadline);
  pg::Params halt(change.adapter, change.instrument);
  const auto rows = co_await connection.query(sql::kRemoveHalt, std::move(halt), deadline);
  if (rows.empty()) co_return false;
  pg::Params audited(change.actor, "resume", halt_json(change), change.reason);
  co_await connection.query(sql::kAuditAction, std::move(audited), deadline);
  co_await connection.query(sql::kTellWorkers, {}, deadline);
  co_await transaction.commit(deadline);
  co_return true;
}

}  // namespace todoke::orders
