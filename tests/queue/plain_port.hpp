// A plain table of jobs as a queue: the example of docs/queue.md, to be copied. A table, five statements, and
// a port that runs them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pg/pool.hpp"
#include "queue/port.hpp"

namespace todoke::test {

inline constexpr const char* kJobsTable = R"sql(
CREATE TABLE jobs (
  id bigserial PRIMARY KEY,
  task text NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'failed', 'succeeded', 'aborted')),
  run_at timestamptz NOT NULL DEFAULT now(),
  attempts integer NOT NULL DEFAULT 0,
  in_doubt boolean NOT NULL DEFAULT false,
  claim_no bigint NOT NULL DEFAULT 0,
  locked_by text,
  locked_at timestamptz
);
CREATE INDEX jobs_due ON jobs (run_at, id) WHERE status IN ('pending', 'failed');
CREATE INDEX jobs_running ON jobs (id) WHERE status = 'running')sql";

inline constexpr pg::Statement kClaim{"claim_jobs", R"sql(
WITH due AS MATERIALIZED (
  SELECT id FROM jobs WHERE status IN ('pending', 'failed') AND run_at <= now()
  ORDER BY run_at, id LIMIT $1 FOR UPDATE SKIP LOCKED)
UPDATE jobs j SET status = 'running', claim_no = claim_no + 1, locked_by = $2, locked_at = now()
FROM due d WHERE j.id = d.id
RETURNING j.id, j.claim_no, j.attempts, j.in_doubt, j.task)sql"};

inline constexpr pg::Statement kTakeOver{"take_over_jobs", R"sql(
WITH lapsed AS MATERIALIZED (
  SELECT id FROM jobs
  WHERE status = 'running' AND locked_at < now() - make_interval(secs => $3) AND id <> ALL ($4::bigint[])
  ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
UPDATE jobs j SET attempts = attempts + 1, in_doubt = true, claim_no = claim_no + 1, locked_by = $2, locked_at = now()
FROM lapsed l WHERE j.id = l.id
RETURNING j.id, j.claim_no, j.attempts, j.in_doubt, j.task)sql"};

inline constexpr pg::Statement kGiveBackUnknown{"give_back_unknown_jobs", R"sql(
UPDATE jobs SET status = 'pending', locked_by = NULL
WHERE status = 'running' AND locked_by = $1 AND id <> ALL ($2::bigint[]))sql"};

inline constexpr pg::Statement kSettle{"settle_jobs", R"sql(
WITH asked AS (
  SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::integer[], $6::boolean[], $7::bigint[]) WITH ORDINALITY
    AS t (id, claim_no, status, attempts, in_doubt, delay_ms, n)),
settled AS (
  UPDATE jobs j SET status = a.status, attempts = a.attempts, in_doubt = a.in_doubt, locked_by = NULL,
    run_at = now() + a.delay_ms * interval '1 millisecond'
  FROM asked a WHERE j.id = a.id AND j.status = 'running' AND j.locked_by = $1 AND j.claim_no = a.claim_no
  RETURNING a.n)
SELECT a.n IN (SELECT n FROM settled) FROM asked a ORDER BY a.n)sql"};

inline constexpr pg::Statement kHeartbeat{"keep_jobs", R"sql(
WITH asked AS (
  SELECT * FROM unnest($2::bigint[], $3::bigint[]) WITH ORDINALITY AS t (id, claim_no, n)),
renewed AS (
  UPDATE jobs j SET locked_at = now()
  FROM asked a WHERE j.id = a.id AND j.status = 'running' AND j.locked_by = $1 AND j.claim_no = a.claim_no
  RETURNING a.n)
SELECT a.n IN (SELECT n FROM renewed) FROM asked a ORDER BY a.n)sql"};

struct TaskJob : queue::Job {
  std::string task;
};

class PlainPort final : public queue::Port {
 public:
  // `worker`: a name that no other worker has, also none of an earlier process.
  PlainPort(pg::Pool& pool, std::string worker) : pool_(pool), worker_(std::move(worker)) {}

  Task<queue::Jobs> claim(std::size_t most) override {
    pg::Params params(static_cast<std::int64_t>(most), worker_);
    const auto rows = co_await run(kClaim, std::move(params));
    co_return jobs_from(rows, false);
  }
  Task<queue::Jobs> take_over(std::chrono::milliseconds lease, std::size_t most,
                              const std::vector<queue::Ticket>& held) override {
    pg::Params params(static_cast<std::int64_t>(most), worker_, seconds_in(lease), ids_of(held));
    const auto rows = co_await run(kTakeOver, std::move(params));
    co_return jobs_from(rows, true);
  }
  Task<void> give_back_unknown(const std::vector<queue::Ticket>& held) override {
    pg::Params params(worker_, ids_of(held));
    co_await run(kGiveBackUnknown, std::move(params));
  }
  Task<std::vector<queue::Fate>> settle(const queue::Jobs& jobs) override {
    std::vector<std::int64_t> ids;
    std::vector<std::int64_t> claims;
    std::vector<std::string_view> statuses;
    std::vector<std::int32_t> attempts;
    std::vector<bool> in_doubt;
    std::vector<std::int64_t> delays_ms;
    for (const auto& job : jobs) {
      ids.push_back(job->ticket.id.value);
      claims.push_back(job->ticket.claim.value);
      statuses.push_back(to_string(job->verdict.status));
      attempts.push_back(job->verdict.attempts);
      in_doubt.push_back(job->verdict.in_doubt);
      delays_ms.push_back(job->verdict.delay.value_or(std::chrono::milliseconds(0)).count());
    }
    pg::Params params(worker_, ids, claims, statuses, attempts, in_doubt, delays_ms);
    const auto rows = co_await run(kSettle, std::move(params));
    std::vector<queue::Fate> fates;
    for (const auto& row : rows) fates.push_back(row.get<bool>(0) ? queue::Fate::settled : queue::Fate::lost);
    co_return fates;
  }
  Task<std::vector<queue::Lease>> heartbeat(const std::vector<queue::Ticket>& tickets) override {
    std::vector<std::int64_t> claims;
    for (const auto& ticket : tickets) claims.push_back(ticket.claim.value);
    pg::Params params(worker_, ids_of(tickets), claims);
    const auto rows = co_await run(kHeartbeat, std::move(params));
    std::vector<queue::Lease> leases;
    for (const auto& row : rows) {
      leases.push_back(row.get<bool>(0) ? queue::Lease::renewed : queue::Lease::lost);
    }
    co_return leases;
  }

 private:
  Task<pg::Result> run(pg::Statement statement, pg::Params params) {
    const auto deadline = Deadline::after(std::chrono::seconds(10));
    const auto connection = co_await pool_.acquire(deadline);
    co_return co_await connection->query(statement, std::move(params), deadline);
  }
  static queue::Jobs jobs_from(const pg::Result& rows, bool lapsed) {
    queue::Jobs jobs;
    for (const auto& row : rows) {
      auto job = std::make_shared<TaskJob>();
      job->ticket = {{row.get<std::int64_t>(0)}, {row.get<std::int64_t>(1)}};
      job->row = {.attempts = row.get<std::int32_t>(2), .in_doubt = row.get<bool>(3), .lapsed = lapsed};
      job->task = row.get<std::string>(4);
      jobs.push_back(std::move(job));
    }
    return jobs;
  }
  static std::vector<std::int64_t> ids_of(const std::vector<queue::Ticket>& tickets) {
    std::vector<std::int64_t> ids;
    for (const auto& ticket : tickets) ids.push_back(ticket.id.value);
    return ids;
  }

  pg::Pool& pool_;
  std::string worker_;
};

}  // namespace todoke::test
