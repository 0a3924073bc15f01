#include "orders/worker/sql_port.hpp"

#include <utility>

#include "orders/core/canonical.hpp"
#include "orders/worker/worker_sql.hpp"

namespace todoke::orders {
namespace {

using queue::Ticket;

// A worker is alive that was seen within this; it shows itself every OrderMonitor::kMeasureEvery. Short,
// because a worker that died with a longer lease than ours would keep its rows for as long.
constexpr std::chrono::seconds kSignOfLife(5);

// As parameters of a statement.
struct TicketArrays {
  explicit TicketArrays(const std::vector<Ticket>& tickets) {
    for (const auto& ticket : tickets) {
      ids.push_back(ticket.id.value);
      claims.push_back(ticket.claim.value);
    }
  }
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> claims;
};

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
      claiming_(connect),
      settling_(connect),
      keeping_(connect),
      success_lines_(options_.success_lines_max) {}

void SqlPort::close() {
  for (auto* link : {&claiming_, &settling_, &keeping_}) link->close();
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
  const auto until = deadline();
  auto* connection = co_await claiming_.get(until);
  const auto limit = static_cast<std::int64_t>(most);
  const auto halts = halts_.known();
  if (!options_.may_claim() || is_halted(*halts, options_.adapter, "")) {
    pg::Params due(limit);
    co_await connection->query(sql::kPromoteDue, std::move(due), until);
    co_return queue::Jobs{};
  }
  std::vector<std::string> halted;
  for (const auto& halt : *halts) {
    if (halt.adapter == "*" || halt.adapter == options_.adapter) halted.push_back(halt.instrument);
  }
  passes_rows_over_ = !halted.empty();
  const auto asked = clock_.steady();
  pg::Batch batch;
  if (options_.in_order) batch.add(sql::kLockInstruments);
  batch.add(sql::kPromoteDue, {limit});
  batch.add(sql::kClaim, {limit, options_.worker, options_.adapter, halted, options_.in_order});
  const auto results = co_await connection->run(std::move(batch), until);
  co_return jobs_from(results.back(), asked, false);
}

Task<queue::Jobs> SqlPort::take_over(std::chrono::milliseconds lease, std::size_t most,
                                     const std::vector<Ticket>& held) {
  if (!options_.may_claim()) co_return queue::Jobs{};
  const auto until = deadline();
  auto* connection = co_await claiming_.get(until);
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
  auto* connection = co_await claiming_.get(until);
  const TicketArrays tickets(held);
  pg::Params params(options_.worker, tickets.ids);
  co_await connection->query(sql::kGiveBackUnknown, std::move(params), until);
}

Task<void> SqlPort::uncount(const std::map<queue::JobId, int>& tries) {
  const auto until = deadline();
  auto* connection = co_await settling_.get(until);
  std::vector<std::int64_t> ids;
  std::vector<std::int32_t> counts;
  for (const auto& [id, count] : tries) {
    ids.push_back(id.value);
    counts.push_back(count);
  }
  pg::Params params(ids, counts);
  co_await connection->query(sql::kUncount, std::move(params), until);
}

Task<std::vector<queue::Lease>> SqlPort::heartbeat(const std::vector<Ticket>& tickets) {
  const auto until = deadline();
  auto* connection = co_await keeping_.get(until);
  const TicketArrays arrays(tickets);
  pg::Params params(options_.worker, arrays.ids, arrays.claims);
  const auto rows = co_await connection->query(sql::kHeartbeat, std::move(params), until);
  std::vector<queue::Lease> leases(tickets.size(), queue::Lease::lost);
  for (const auto& row : rows) {
    const auto place = static_cast<std::size_t>(row.get<std::int64_t>("n")) - 1;
    leases.at(place) = row.get<bool>("renewed") ? queue::Lease::renewed : queue::Lease::runs_on;
  }
  co_return leases;
}

}  // namespace todoke::orders
