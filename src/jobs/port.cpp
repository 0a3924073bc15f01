#include "jobs/port.hpp"

#include <utility>

#include "jobs/jobs_sql.hpp"

namespace todoke::jobs {
namespace {

constexpr std::chrono::seconds kStatementMax(10);

queue::Jobs claimed_from(const pg::Result& rows, bool lapsed) {
  queue::Jobs jobs;
  for (const auto& row : rows) {
    auto job = std::make_shared<ClaimedJob>();
    job->ticket = {{row.get<std::int64_t>(0)}, {row.get<std::int64_t>(1)}};
    job->row = {.attempts = row.get<std::int32_t>(2), .in_doubt = row.get<bool>(3), .lapsed = lapsed};
    job->kind = row.get<std::string>(4);
    job->subject = row.get<std::string>(5);
    job->params = row.get<pg::Jsonb>(6).text;
    job->state = row.get<pg::Jsonb>(7).text;
    job->is_cancelled = row.get<bool>(8);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

// As parameters of a statement.
struct Tickets {
  explicit Tickets(const std::vector<queue::Ticket>& tickets) {
    for (const auto& ticket : tickets) add(ticket);
  }
  void add(const queue::Ticket& ticket) {
    ids.push_back(ticket.id.value);
    claims.push_back(ticket.claim.value);
  }
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> claims;
};

struct Verdicts {
  explicit Verdicts(const queue::Jobs& jobs) : tickets({}) {
    for (const auto& job : jobs) add(static_cast<const ClaimedJob&>(*job));
  }
  void add(const ClaimedJob& job) {
    tickets.add(job.ticket);
    statuses.push_back(status_of(job));
    attempts.push_back(job.verdict.attempts);
    in_doubt.push_back(job.verdict.in_doubt);
    delays_ms.push_back(job.verdict.delay.value_or(std::chrono::milliseconds(0)).count());
    results.push_back(job.result.empty() ? std::nullopt : std::optional(pg::Jsonb{job.result}));
    errors.push_back(job.error.empty() ? std::nullopt : std::optional(job.error));
  }
  Tickets tickets;
  std::vector<std::string_view> statuses;
  std::vector<std::int32_t> attempts;
  std::vector<bool> in_doubt;
  std::vector<std::int64_t> delays_ms;
  std::vector<std::optional<pg::Jsonb>> results;
  std::vector<std::optional<std::string>> errors;
};

}  // namespace

std::string_view status_of(const ClaimedJob& job) {
  return job.is_cancelled && queue::is_over(job.verdict.status) ? "cancelled" : to_string(job.verdict.status);
}

JobsPort::JobsPort(pg::Pool& pool, std::string worker, std::vector<std::string> kinds)
    : pool_(pool), worker_(std::move(worker)), kinds_(std::move(kinds)) {}

Task<pg::Result> JobsPort::run(pg::Statement statement, pg::Params params) {
  const auto deadline = Deadline::after(kStatementMax);
  const auto connection = co_await pool_.acquire(deadline);
  co_return co_await connection->query(statement, std::move(params), deadline);
}

Task<queue::Jobs> JobsPort::claim(std::size_t most) {
  pg::Params params(static_cast<std::int64_t>(most), worker_, kinds_);
  co_return claimed_from(co_await run(sql::kClaim, std::move(params)), false);
}

Task<queue::Jobs> JobsPort::take_over(std::chrono::milliseconds lease, std::size_t most,
                                      const std::vector<queue::Ticket>& held) {
  const Tickets own(held);
  pg::Params params(static_cast<std::int64_t>(most), worker_, kinds_, seconds_in(lease), own.ids);
  co_return claimed_from(co_await run(sql::kTakeOver, std::move(params)), true);
}

Task<void> JobsPort::give_back_unknown(const std::vector<queue::Ticket>& held) {
  const Tickets own(held);
  pg::Params params(worker_, own.ids);
  co_await run(sql::kGiveBackUnknown, std::move(params));
}

Task<std::vector<queue::Fate>> JobsPort::settle(const queue::Jobs& jobs) {
  const Verdicts all(jobs);
  pg::Params params(worker_, all.tickets.ids, all.tickets.claims, all.statuses, all.attempts, all.in_doubt,
                    all.delays_ms, all.results, all.errors);
  const auto rows = co_await run(sql::kSettle, std::move(params));
  std::vector<queue::Fate> fates;
  for (const auto& row : rows) fates.push_back(row.get<bool>(0) ? queue::Fate::settled : queue::Fate::lost);
  co_return fates;
}

Task<std::vector<queue::Lease>> JobsPort::heartbeat(const std::vector<queue::Ticket>& tickets) {
  const Tickets own(tickets);
  pg::Params params(worker_, own.ids, own.claims);
  const auto rows = co_await run(sql::kHeartbeat, std::move(params));
  std::vector<queue::Lease> leases;
  for (const auto& row : rows) {
    leases.push_back(row.get<bool>(0) ? queue::Lease::renewed : queue::Lease::lost);
  }
  co_return leases;
}

Task<JobsPort::Kept> JobsPort::keep(queue::Ticket ticket, std::int64_t done,
                                    std::optional<std::int64_t> total, std::string state) {
  pg::Params params(ticket.id.value, worker_, ticket.claim.value, done, total, pg::Jsonb{std::move(state)});
  const auto rows = co_await run(sql::kKeep, std::move(params));
  if (rows.empty()) co_return Kept::lost;
  co_return rows.one().get<bool>(0) ? Kept::cancelled : Kept::goes_on;
}

}  // namespace todoke::jobs
