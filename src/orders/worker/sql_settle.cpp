// Settling: the verdicts as arrays, one statement, a fate for each order.
#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "orders/worker/sql_port.hpp"
#include "orders/worker/worker_sql.hpp"
#include "pg/error.hpp"

namespace todoke::orders {
namespace {

using queue::Fate;
using queue::RowStatus;

template <class T>
using Column = std::vector<std::optional<T>>;

std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

const OrderJob& order_of(const queue::JobPtr& job) {
  return static_cast<const OrderJob&>(*job);
}

// The arrays for the rows and the ledger.
struct VerdictColumns {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> claims;
  std::vector<std::string_view> verdicts;
  std::vector<std::int32_t> counted;
  Column<std::string> codes;
  Column<std::string> messages;
  Column<std::int64_t> delays_ms;
  std::vector<bool> in_doubt;
  std::vector<bool> key_was_taken;
  Column<std::int32_t> http;
  Column<std::string> digests;
  Column<std::string> payloads;
  std::vector<std::string_view> hashes;

  void add(const OrderJob& job) {
    const auto& verdict = job.verdict;
    ids.push_back(job.ticket.id.value);
    claims.push_back(job.ticket.claim.value);
    verdicts.push_back(job.follows_ledger() ? "ledger" : to_string(verdict.status));
    counted.push_back(verdict.attempts - job.row.attempts);
    codes.push_back(text_or_null(job.error_code));
    messages.push_back(text_or_null(job.error_msg));
    delays_ms.push_back(verdict.delay ? std::optional(verdict.delay->count()) : std::nullopt);
    in_doubt.push_back(verdict.in_doubt);
    key_was_taken.push_back(job.key_was_taken);
    http.push_back(is_over(verdict.status) ? std::optional(job.http_status) : std::nullopt);
    digests.push_back(text_or_null(job.result_digest));
    payloads.push_back(text_or_null(job.payload));
    hashes.push_back(job.key_hash);
  }
  void add_to(pg::Params& params) const {
    params.add(ids).add(claims).add(verdicts).add(counted).add(codes).add(messages).add(delays_ms);
    params.add(in_doubt).add(key_was_taken).add(http).add(digests).add(payloads).add(hashes);
  }
};

// The arrays for the journal.
struct JournalColumns {
  Column<std::string> broker_ids;
  Column<SystemTime> began;
  Column<SystemTime> ended;
  Column<std::string> outcomes;
  Column<std::string> refs;
  Column<std::string> notes;

  void add(const OrderJob& job) {
    const auto& tried = job.tried;
    broker_ids.push_back(tried ? std::optional(tried->broker_id) : std::nullopt);
    began.push_back(tried ? std::optional(tried->began_at) : std::nullopt);
    ended.push_back(tried ? std::optional(tried->ended_at) : std::nullopt);
    outcomes.push_back(tried ? std::optional(tried->outcome) : std::nullopt);
    refs.push_back(tried ? tried->broker_ref : std::nullopt);
    notes.push_back(tried ? text_or_null(tried->note) : std::nullopt);
  }
  void add_to(pg::Params& params) const {
    params.add(broker_ids).add(began).add(ended).add(outcomes).add(refs).add(notes);
  }
};

}  // namespace

Task<std::vector<Fate>> SqlPort::settle(const queue::Jobs& jobs) {
  auto rows = co_await attempt(run_settle(jobs));
  if (!rows) {
    if (!pg::lacks_partition(rows.error())) std::rethrow_exception(rows.error());
    co_await make_partitions();
    rows = co_await run_settle(jobs);
  }
  options_.on_settled();
  // A ticket that the statement does not return is locked.
  std::vector<Fate> fates(jobs.size(), Fate::locked);
  for (const auto& row : *rows) {
    const auto place = static_cast<std::size_t>(row.get<std::int64_t>("n")) - 1;
    const bool is_settled = row.get<bool>("settled");
    fates.at(place) = is_settled ? Fate::settled : Fate::lost;
    if (is_settled) report(order_of(jobs[place]), row);
  }
  co_return fates;
}

Task<pg::Result> SqlPort::run_settle(const queue::Jobs& jobs) {
  VerdictColumns verdicts;
  JournalColumns journal;
  for (const auto& job : jobs) {
    verdicts.add(order_of(job));
    journal.add(order_of(job));
  }
  pg::Params params(options_.worker, options_.adapter);
  verdicts.add_to(params);
  journal.add_to(params);
  const auto until = deadline();
  auto* connection = co_await settling_.get(until);
  co_return co_await connection->query(sql::kSettle, std::move(params), until);
}

// The journal's new month has begun before anybody made its partition.
Task<void> SqlPort::make_partitions() {
  const auto until = deadline();
  auto* connection = co_await settling_.get(until);
  constexpr pg::Statement kEnsure{"ensure_partitions_now", "SELECT orders.ensure_partitions(now())"};
  co_await connection->query(kEnsure, {}, until);
}

void SqlPort::report(const OrderJob& job, const pg::Row& row) {
  if (row.get<bool>("follows")) {
    report_followed(job, row);
  } else if (job.verdict.status != RowStatus::pending) {
    report_settled(job);
  }
}

void SqlPort::report_settled(const OrderJob& job) {
  switch (job.verdict.status) {
    case RowStatus::succeeded:
      metrics_.succeeded.add();
      break;
    case RowStatus::aborted:
      metrics_.aborted.add();
      if (job.verdict.in_doubt) metrics_.aborted_in_doubt.add();
      break;
    default: {
      metrics_.failed.add();
      const auto attempt = static_cast<std::size_t>(std::max(job.verdict.attempts, 1));
      metrics_.retries[std::min(attempt, metrics_.retries.size()) - 1]->add();
    }
  }
  // Every failure has a line of its own, whatever their number.
  const bool is_told = job.verdict.status != RowStatus::succeeded || success_lines_.allows(clock_.steady());
  log::write(is_told ? log::Level::info : log::Level::debug, "orders", "order settled",
             {{"idempotency_key", job.key_hash},
              {"outbox_id", job.ticket.id.value},
              {"status", to_string(job.verdict.status)},
              {"attempts", job.verdict.attempts},
              {"reason_code", job.error_code},
              {"adapter", options_.adapter},
              {"in_doubt", job.verdict.in_doubt},
              {"latency_ms", sending_ms(job)},
              {"lines_left_out", is_told ? success_lines_.take_left_out() : 0}});
}

void SqlPort::report_followed(const OrderJob& job, const pg::Row& row) {
  const auto code = row.get<std::optional<std::string>>("last_error_code").value_or("");
  const bool is_conflict = code == reason::kIdempotencyConflict;
  (is_conflict ? metrics_.conflict : metrics_.synced).add();
  log::info("orders", "an order follows its ledger",
            {{"idempotency_key", job.key_hash},
             {"outbox_id", job.ticket.id.value},
             {"status", row.get<std::string>("status")},
             {"attempts", row.get<std::int32_t>("attempts")},
             {"reason_code", code},
             {"adapter", options_.adapter},
             {"latency_ms", sending_ms(job)}});
}

}  // namespace todoke::orders
