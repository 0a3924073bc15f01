#include "orders/brokers/fix/store.hpp"

#include <utility>

#include "orders/brokers/fix/fix_sql.hpp"
#include "orders/brokers/fix/report.hpp"

namespace todoke::orders {
namespace {

// Longer than any id or amount; the key of the table must fit in a page of its index.
constexpr std::size_t kFieldMax = 256;

void clean(std::string& text) {
  if (text.size() > kFieldMax) text.resize(kFieldMax);
  for (auto& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
}

pg::Params entry_params(const std::string& session, std::int64_t epoch, const std::vector<FixEntry>& entries,
                        bool with_keys) {
  std::vector<std::string> ids;
  std::vector<std::int64_t> outbox_ids;
  std::vector<std::string> keys;
  for (const auto& entry : entries) {
    ids.push_back(entry.cl_ord_id);
    outbox_ids.push_back(entry.outbox_id);
    keys.push_back(entry.idempotency_key);
  }
  pg::Params params(session, epoch, ids, outbox_ids);
  if (with_keys) params.add(keys);
  return params;
}

pg::Params report_params(const std::string& session, std::int64_t epoch,
                         const std::vector<fix::Report>& reports) {
  using Field = std::string fix::Report::*;
  pg::Params params(session, epoch);
  for (const Field field :
       {&fix::Report::cl_ord_id, &fix::Report::exec_id, &fix::Report::order_id, &fix::Report::exec_type,
        &fix::Report::exec_ref_id, &fix::Report::ord_status, &fix::Report::ord_rej_reason,
        &fix::Report::last_qty, &fix::Report::last_px, &fix::Report::cum_qty, &fix::Report::avg_px,
        &fix::Report::transact_time, &fix::Report::text}) {
    std::vector<std::string> column;
    column.reserve(reports.size());
    for (const auto& report : reports) column.push_back(report.*field);
    params.add(column);
  }
  return params;
}

}  // namespace

fix::Report cleaned(fix::Report report) {
  for (auto* text : {&report.cl_ord_id, &report.order_id, &report.exec_id, &report.exec_type,
                     &report.exec_ref_id, &report.ord_status, &report.ord_rej_reason, &report.last_qty,
                     &report.last_px, &report.cum_qty, &report.avg_px, &report.transact_time, &report.text}) {
    clean(*text);
  }
  return report;
}

fix::Report report_from(const pg::Row& row, std::size_t first) {
  fix::Report report;
  auto column = first;
  for (auto* text : {&report.cl_ord_id, &report.exec_id, &report.order_id, &report.exec_type,
                     &report.exec_ref_id, &report.ord_status, &report.ord_rej_reason, &report.last_qty,
                     &report.last_px, &report.cum_qty, &report.avg_px, &report.transact_time, &report.text}) {
    *text = row.get<std::optional<std::string>>(column++).value_or("");
  }
  return report;
}

Task<std::optional<FixOwned>> FixStore::claim_session(const std::string& worker, Deadline deadline) {
  auto* connection = co_await link_.get(deadline);
  pg::Params params(session_, worker, lease_.count(), kNumbersAhead);
  const auto rows = co_await connection->query(sql::kFixClaimSession, std::move(params), deadline);
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.one();
  co_return FixOwned{row.get<std::int64_t>(0), row.get<std::int64_t>(1), row.get<std::int64_t>(2)};
}

Task<std::string> FixStore::owner(Deadline deadline) {
  auto* connection = co_await link_.get(deadline);
  pg::Params params(session_);
  const auto rows = co_await connection->query(sql::kFixOwner, std::move(params), deadline);
  co_return rows.empty() ? std::string() : rows.one().get<std::string>(0);
}

Task<FixRoundEnd> FixStore::write(std::int64_t epoch, const FixRound& round, Deadline deadline) {
  auto* connection = co_await link_.get(deadline);
  pg::Batch batch;
  batch.add(sql::kFixKeep, pg::Params(session_, epoch, lease_.count(), round.next_out, round.next_in));
  if (!round.entries.empty()) {
    batch.add(sql::kFixForgetFormer, entry_params(session_, epoch, round.entries, false));
    batch.add(sql::kFixInsertOrders, entry_params(session_, epoch, round.entries, true));
  }
  const auto reports_at = batch.size();
  if (!round.reports.empty())
    batch.add(sql::kFixInsertReports, report_params(session_, epoch, round.reports));
  if (!round.statuses.empty()) {
    batch.add(sql::kFixUpsertStatuses, report_params(session_, epoch, round.statuses));
  }
  const auto awaited_at = batch.size();
  if (!round.awaited.empty()) batch.add(sql::kFixReportsOf, pg::Params(session_, round.awaited));
  const auto results = co_await connection->run(std::move(batch), deadline);

  FixRoundEnd end;
  end.is_ours = !results.at(0).empty();
  if (!end.is_ours) co_return end;
  if (!round.reports.empty()) {
    for (const auto& row : results.at(reports_at)) {
      const auto fresh = row.get<std::int64_t>(1);
      end.fresh += fresh;
      if (!row.get<bool>(2)) end.unmatched += fresh;
    }
  }
  if (!round.awaited.empty()) {
    for (const auto& row : results.at(awaited_at)) {
      auto report = report_from(row);
      if (!is_status(report)) end.awaited[report.cl_ord_id].push_back(std::move(report));
    }
  }
  co_return end;
}

Task<void> FixStore::give_up(std::int64_t epoch, const fix::Numbers& numbers, Deadline deadline) {
  auto* connection = co_await link_.get(deadline);
  pg::Params params(session_, epoch, static_cast<std::int64_t>(numbers.next_out),
                    static_cast<std::int64_t>(numbers.next_in));
  co_await connection->query(sql::kFixGiveUp, std::move(params), deadline);
}

Task<FixStored> FixStore::stored(std::string cl_ord_id, std::int64_t outbox_id, Deadline deadline) {
  const auto lease = co_await pool_.acquire(deadline);
  const std::vector<std::string> ids{cl_ord_id};
  pg::Batch batch(pg::Batch::Mode::plain);
  batch.add(sql::kFixIsOrder, pg::Params(session_, cl_ord_id, outbox_id));
  batch.add(sql::kFixReportsOf, pg::Params(session_, ids));
  const auto results = co_await lease->run(std::move(batch), deadline);
  FixStored stored;
  stored.is_order = results.at(0).one().get<bool>(0);
  if (!stored.is_order) co_return stored;
  for (const auto& row : results.at(1)) stored.reports.push_back(report_from(row));
  co_return stored;
}

}  // namespace todoke::orders
