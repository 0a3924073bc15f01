#include "orders/brokers/fix/ledger.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "orders/brokers/fix/fix_sql.hpp"
#include "orders/brokers/fix/store.hpp"
#include "orders/core/canonical.hpp"
#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"
#include "pg/error.hpp"
#include "pg/transaction.hpp"

namespace todoke::orders {
namespace {

constexpr std::int64_t kForgetMost = 1'000;

bool is_of_fills(const std::string& text) {
  return text == warning::kWorking || text == warning::kUnfilled || text == warning::kUnreadable;
}

}  // namespace

bool bring_up_to_date(ExecResult& result, const FixView& view, const Order& order) {
  auto fresh = result_of(view, order);
  // It was settled by an answer of the broker whose reports never came, or by an operator.
  if (fresh.executed_qty < result.executed_qty && !view.is_corrected) return false;
  auto warnings = result.warnings;
  std::erase_if(warnings, is_of_fills);
  warnings.insert(warnings.begin(), fresh.warnings.begin(), fresh.warnings.end());
  const auto sorted = [](std::vector<std::string> list) {
    std::sort(list.begin(), list.end());
    return list;
  };
  if (fresh.fills == result.fills && sorted(warnings) == sorted(result.warnings)) return false;
  result.fills = std::move(fresh.fills);
  result.executed_qty = fresh.executed_qty;
  result.cost = fresh.cost;
  result.avg_price = fresh.avg_price;
  result.slippage = fresh.slippage;
  result.warnings = std::move(warnings);
  return true;
}

Task<FixLedger::Done> FixLedger::apply(Deadline deadline) {
  auto* connection = co_await link_.get(deadline);
  pg::Params params(session_, kMost);
  const auto rows = co_await connection->query(sql::kFixUnapplied, std::move(params), deadline);
  Done done;
  for (const auto& row : rows) {
    Open open{row.get<std::string>(0), row.get<std::int64_t>(1), row.get<std::string>(2),
              row.get<std::int64_t>(3)};
    auto step = Step::later;
    try {
      step = co_await apply_one(std::move(open), deadline);
    } catch (const pg::Error& error) {
      if (!error.is_lock_timeout()) throw;
    }
    ++done.looked_at;
    if (step == Step::updated) ++done.updated;
    if (step == Step::woken) ++done.woken;
  }
  co_return done;
}

Task<FixLedger::Step> FixLedger::apply_one(Open open, Deadline deadline) {
  auto* connection = co_await link_.get(deadline);
  auto transaction = co_await pg::begin(*connection, deadline);
  const auto step = co_await decide(*connection, open, deadline);
  if (step != Step::later) {
    pg::Params params(session_, open.cl_ord_id, open.outbox_id, open.stored);
    co_await connection->query(sql::kFixSetApplied, std::move(params), deadline);
  }
  co_await transaction.commit(deadline);
  co_return step;
}

Task<FixLedger::Step> FixLedger::decide(pg::Connection& connection, const Open& open, Deadline deadline) {
  pg::Params by_id(open.outbox_id);
  auto outbox = co_await connection.query(sql::kFixLockOrder, by_id, deadline);
  const bool is_live = !outbox.empty();
  if (is_live && outbox.one().get<std::string>(0) == "sending") co_return Step::later;
  pg::Params by_key(open.key);
  const auto ledger = co_await connection.query(sql::kFixLockLedger, std::move(by_key), deadline);
  std::string document;
  if (is_live) {
    document = outbox.one().get<pg::Jsonb>(2).text;
  } else {
    const auto archived = co_await connection.query(sql::kFixArchivedOrder, by_id, deadline);
    if (!archived.empty()) document = archived.one().get<pg::Jsonb>(0).text;
  }
  const auto order = parse_order(document);
  const auto reports = co_await reports_of(connection, open.cl_ord_id, deadline);
  const auto hash = key_hash(open.key);
  if (!order || ledger.empty()) {
    log::warning("fix", "a report came for an order that is not in the ledger",
                 {{"idempotency_key", hash}, {"reports", open.stored}});
    co_return Step::none;
  }
  const auto view = view_of(reports, order->time_in_force);
  if (view.is_unreadable) {
    log::error("fix", "a fill could not be read: see orders.fix_reports", {{"idempotency_key", hash}});
  }
  if (!view.is_acknowledged()) co_return Step::none;

  if (ledger.one().get<std::string>(0) == "succeeded") {
    auto result = parse_exec_result(ledger.one().get<std::optional<std::string>>(1).value_or(""));
    if (!result) {
      log::error("fix", "fills can't be added: the ledger's result can't be read",
                 {{"idempotency_key", hash}});
      co_return Step::none;
    }
    // An operator may have settled it with more than the broker has told.
    if (result->broker.name != "fix" || !bring_up_to_date(*result, view, *order)) co_return Step::none;
    pg::Params written(open.key, to_json(*result), result_digest(*result));
    co_await connection.query(sql::kFixWriteLedger, std::move(written), deadline);
    co_return Step::updated;
  }
  if (!is_live) co_return Step::none;
  pg::Params wake(open.outbox_id, outbox.one().get<std::string>(0));
  const auto woken = co_await connection.query(sql::kFixWakeOrder, std::move(wake), deadline);
  co_return woken.empty() ? Step::none : Step::woken;
}

Task<std::vector<fix::Report>> FixLedger::reports_of(pg::Connection& connection, const std::string& cl_ord_id,
                                                     Deadline deadline) {
  const std::vector<std::string> ids{cl_ord_id};
  pg::Params params(session_, ids);
  const auto rows = co_await connection.query(sql::kFixReportsOf, std::move(params), deadline);
  std::vector<fix::Report> reports;
  for (const auto& row : rows) reports.push_back(report_from(row));
  co_return reports;
}

Task<std::int64_t> FixLedger::forget(std::chrono::seconds keep, Deadline deadline) {
  auto* connection = co_await link_.get(deadline);
  const auto seconds = static_cast<double>(keep.count());
  pg::Batch batch;
  batch.add(sql::kFixForgetOrders, pg::Params(seconds, kForgetMost));
  batch.add(sql::kFixForgetReports, pg::Params(seconds, kForgetMost));
  const auto results = co_await connection->run(std::move(batch), deadline);
  co_return results.at(0).affected() + results.at(1).affected();
}

}  // namespace todoke::orders
