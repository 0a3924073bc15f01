#include "orders/worker/sql_port.hpp"

#include <algorithm>
#include <utility>

#include "orders/core/canonical.hpp"
#include "orders/worker/history.hpp"
#include "orders/worker/retention_sql.hpp"
#include "orders/worker/tickets.hpp"
#include "orders/worker/worker_sql.hpp"
#include "pg/error.hpp"

namespace todoke::orders {
namespace {

using queue::Ticket;

constexpr std::int64_t kUpkeepRows = 1'000;
constexpr std::chrono::hours kPartitionsEvery(1);
// A worker is alive that was seen within this; it shows itself every OrderMonitor::kLookEvery. Short, because
// a worker that died with a longer lease than ours would keep its rows for as long.
constexpr std::chrono::seconds kSignOfLife(5);

LedgerState ledger_state(const std::optional<std::string>& status, const std::optional<std::string>& digest,
                         const std::string& own_digest) {
  if (!status) return LedgerState::missing;
  if (digest != own_digest) return LedgerState::conflicting;
  if (*status == "succeeded") return LedgerState::succeeded;
  if (*status == "failed") return LedgerState::failed;
  return LedgerState::open;
}

}  // namespace

SqlPort::SqlPort(const pg::ConnectOptions& connect, SqlPortOptions options, const Halts& halts,
                 const Clock& clock, OrderMetrics& metrics)
    : options_(std::move(options)),
      halts_(halts),
      clock_(clock),
      metrics_(metrics),
      taking_(connect),
      letting_go_(connect),
      keeping_(connect),
      house_(connect),
      success_lines_(options_.success_lines_max) {}

void SqlPort::close() {
  for (auto* link : {&taking_, &letting_go_, &keeping_, &house_}) link->close();
}

Task<std::size_t> SqlPort::promote_due(std::size_t most) {
  const auto until = deadline();
  auto* connection = co_await taking_.get(until);
  pg::Params params(static_cast<std::int64_t>(most));
  const auto rows = co_await connection->query(sql::kPromoteDue, std::move(params), until);
  co_return static_cast<std::size_t>(rows.affected());
}

queue::Jobs SqlPort::jobs_from(const pg::Result& rows, SteadyTime asked, bool lapsed) const {
  queue::Jobs jobs;
  jobs.reserve(rows.size());
  for (const auto& row : rows) {
    auto job = std::make_shared<OrderJob>();
    job->ticket = {{row.get<std::int64_t>(0)}, {row.get<std::int64_t>(1)}};
    job->key = row.get<std::string>(4);
    job->key_hash = key_hash(job->key);
    const auto digest = row.get<std::string>(5);
    job->row = {.attempts = row.get<std::int32_t>(2), .in_doubt = row.get<bool>(3), .lapsed = lapsed};
    job->ledger = ledger_state(row.get<std::optional<std::string>>(11),
                               row.get<std::optional<std::string>>(12), digest);
    job->document = row.get<pg::Jsonb>(6).text;
    job->created_at = row.get<SystemTime>(7);
    job->trace_id = row.get<std::optional<std::string>>(8);
    job->last_error_code = row.get<std::optional<std::string>>(9);
    job->last_error_msg = row.get<std::optional<std::string>>(10);
    job->claimed_at = row.get<SystemTime>(13);
    job->key_was_taken = row.get<bool>(14);
    job->claimed_steady = asked;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

Task<queue::Jobs> SqlPort::claim(std::size_t most) {
  if (!options_.may_take()) co_return queue::Jobs{};
  const auto halts = halts_.known();
  if (is_halted(*halts, options_.adapter, "")) co_return queue::Jobs{};
  std::vector<std::string> halted;
  for (const auto& halt : *halts) {
    if (halt.adapter == "*" || halt.adapter == options_.adapter) halted.push_back(halt.instrument);
  }
  passes_rows_over_ = !halted.empty();
  const auto until = deadline();
  auto* connection = co_await taking_.get(until);
  const auto asked = clock_.steady();
  pg::Params params(static_cast<std::int64_t>(most), options_.worker, options_.adapter, halted,
                    options_.in_order);
  if (!options_.in_order) {
    const auto rows = co_await connection->query(sql::kClaim, std::move(params), until);
    co_return jobs_from(rows, asked, false);
  }
  pg::Batch batch;
  batch.add(sql::kLockInstruments);
  batch.add(sql::kClaim, std::move(params));
  const auto results = co_await connection->run(std::move(batch), until);
  co_return jobs_from(results.at(1), asked, false);
}

Task<queue::Jobs> SqlPort::take_over(std::chrono::milliseconds lease, std::size_t most,
                                     const std::vector<Ticket>& held) {
  if (!options_.may_take()) co_return queue::Jobs{};
  const auto until = deadline();
  auto* connection = co_await taking_.get(until);
  const auto asked = clock_.steady();
  const TicketArrays own(held);
  pg::Params params(static_cast<std::int64_t>(most), options_.worker, seconds_in(lease),
                    static_cast<std::int32_t>(options_.attempts_max), options_.adapter, own.ids,
                    seconds_in(kSignOfLife));
  const auto rows = co_await connection->query(sql::kTakeOver, std::move(params), until);
  co_return jobs_from(rows, asked, true);
}

Task<void> SqlPort::give_back_unknown(const std::vector<Ticket>& held) {
  const auto until = deadline();
  auto* connection = co_await taking_.get(until);
  const TicketArrays tickets(held);
  pg::Params params(options_.worker, tickets.ids);
  co_await connection->query(sql::kGiveBackUnknown, std::move(params), until);
}

Task<void> SqlPort::refund(const std::map<queue::JobId, int>& tries) {
  const auto until = deadline();
  auto* connection = co_await letting_go_.get(until);
  std::vector<std::int64_t> ids;
  std::vector<std::int32_t> counts;
  for (const auto& [id, count] : tries) {
    ids.push_back(id.value);
    counts.push_back(count);
  }
  pg::Params params(ids, counts);
  co_await connection->query(sql::kRefund, std::move(params), until);
}

Task<std::vector<queue::Kept>> SqlPort::heartbeat(const std::vector<Ticket>& tickets) {
  const auto until = deadline();
  auto* connection = co_await keeping_.get(until);
  const TicketArrays arrays(tickets);
  pg::Params params(options_.worker, arrays.ids, arrays.claims);
  const auto rows = co_await connection->query(sql::kHeartbeat, std::move(params), until);
  const auto renewed = tickets_of(rows);
  std::vector<queue::Kept> kept;
  for (const auto& ticket : renewed) kept.push_back({ticket, true});
  const auto locked = co_await still_held(keeping_, without(sorted(tickets), renewed));
  for (const auto& ticket : locked) kept.push_back({ticket, false});
  co_return kept;
}

Task<Tickets> SqlPort::still_held(DbLink& link, Tickets tickets) {
  if (tickets.empty()) co_return tickets;
  const auto until = deadline();
  auto* connection = co_await link.get(until);
  const TicketArrays arrays(std::move(tickets));
  pg::Params params(options_.worker, arrays.ids, arrays.claims);
  const auto rows = co_await connection->query(sql::kStillHeld, std::move(params), until);
  co_return tickets_of(rows);
}

Task<void> SqlPort::ensure_partitions() {
  const auto until = deadline();
  auto* connection = co_await house_.get(until);
  co_await connection->query(sql::kEnsureOrderPartitions, {}, until);
  partitions_at_ = clock_.steady();
}

Task<bool> SqlPort::archive() {
  if (clock_.steady() - partitions_at_ > kPartitionsEvery) co_await ensure_partitions();
  const auto until = deadline();
  auto* connection = co_await house_.get(until);
  if (options_.history_months > 0 && (!history_at_ || clock_.steady() - *history_at_ > kPartitionsEvery)) {
    co_await drop_history(*connection, options_.history_months, metrics_.history_dropped, until);
    history_at_ = clock_.steady();
  }
  pg::Params page(archive_after_, kUpkeepRows, seconds_in(options_.keep_succeeded),
                  seconds_in(options_.keep_aborted));
  const auto archived = co_await connection->query(sql::kArchiveOrders, std::move(page), until);
  const auto row = archived.one();
  const bool outbox_ends = row.get<bool>(2) || row.get<std::int64_t>(1) < kUpkeepRows;
  archive_after_ = outbox_ends ? 0 : row.get<std::int64_t>(0);
  metrics_.archived.add(static_cast<std::uint64_t>(row.get<std::int64_t>(3)));

  pg::Params keys(purge_after_, purge_after_key_, kUpkeepRows, seconds_in(options_.keep_ledger));
  const auto purged = co_await connection->query(sql::kPurgeLedger, std::move(keys), until);
  const bool ledger_ends = purged.empty() || purged[0].get<std::int64_t>(2) < kUpkeepRows;
  purge_after_ = ledger_ends ? SystemTime{} : purged[0].get<SystemTime>(0);
  purge_after_key_ = ledger_ends ? "" : purged[0].get<std::string>(1);
  co_return !outbox_ends || !ledger_ends;
}

}  // namespace todoke::orders
