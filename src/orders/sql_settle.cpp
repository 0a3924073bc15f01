// The settling of tries: arrays in, one statement, who was fenced out.
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "orders/sql_port.hpp"
#include "orders/worker_sql.hpp"
#include "pg/error.hpp"

namespace todoke::orders {
namespace {

using queue::LedgerWrite;
using queue::RowStatus;
using queue::Ticket;

template <class T>
using Column = std::vector<std::optional<T>>;

std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

std::optional<std::string> ledger_text(LedgerWrite write) {
  switch (write) {
    case LedgerWrite::none:
      return std::nullopt;
    case LedgerWrite::succeeded:
      return "succeeded";
    case LedgerWrite::failed:
      return "failed";
  }
  return std::nullopt;
}

// As the statements want them: rows are locked in this order.
void sort_by_id(std::vector<OrderJob*>& jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const auto* a, const auto* b) { return a->ticket < b->ticket; });
}

// The journal's columns.
struct JournalColumns {
  Column<std::string> broker_ids;
  Column<SystemTime> began;
  Column<SystemTime> ended;
  Column<std::string> outcomes;
  Column<std::string> refs;

  void add(const std::optional<TryRecord>& tried) {
    broker_ids.push_back(tried ? std::optional(tried->broker_id) : std::nullopt);
    began.push_back(tried ? std::optional(tried->began_at) : std::nullopt);
    ended.push_back(tried ? std::optional(tried->ended_at) : std::nullopt);
    outcomes.push_back(tried ? std::optional(tried->outcome) : std::nullopt);
    refs.push_back(tried ? tried->broker_ref : std::nullopt);
  }
};

}  // namespace

Task<std::vector<Ticket>> SqlPort::settle(const queue::Jobs& jobs) {
  Held tries;
  Held following;
  for (const auto& job : jobs) {
    auto* order = static_cast<OrderJob*>(job.get());
    (order->follows_ledger ? following : tries).push_back(order);
  }
  sort_by_id(tries);
  Held not_held;
  if (!tries.empty()) {
    auto held = co_await settle_tries(tries, following);
    std::sort(held.begin(), held.end());
    for (auto* job : tries) {
      if (std::binary_search(held.begin(), held.end(), job->ticket.id.value)) {
        // A settling that is repeated must not find what is done.
        if (std::find(following.begin(), following.end(), job) == following.end()) count(*job);
      } else {
        not_held.push_back(job);
      }
    }
  }
  sort_by_id(following);
  if (!following.empty()) co_await follow_ledger(following);
  options_.on_settled();
  if (not_held.empty()) co_return std::vector<Ticket>{};
  co_return co_await journal_fenced(not_held);
}

Task<std::vector<std::int64_t>> SqlPort::settle_tries(const Held& jobs, Held& diverted) {
  std::exception_ptr failure;
  pg::Result rows;
  try {
    rows = co_await run_settle(jobs);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    if (!pg::lacks_partition(failure)) std::rethrow_exception(failure);
    const auto until = deadline();
    auto* connection = co_await letting_go_.get(until);
    constexpr pg::Statement kEnsure{"ensure_partitions_now", "SELECT orders.ensure_partitions(now())"};
    co_await connection->query(kEnsure, {}, until);
    rows = co_await run_settle(jobs);
  }
  std::vector<std::int64_t> held;
  std::vector<std::int64_t> settled;
  for (const auto& row : rows) (row.get<bool>(1) ? settled : held).push_back(row.get<std::int64_t>(0));
  if (settled.size() < held.size()) {
    std::sort(settled.begin(), settled.end());
    std::sort(held.begin(), held.end());
    for (auto* job : jobs) {
      const auto id = job->ticket.id.value;
      if (std::binary_search(held.begin(), held.end(), id) &&
          !std::binary_search(settled.begin(), settled.end(), id)) {
        diverted.push_back(job);
      }
    }
  }
  co_return held;
}

Task<pg::Result> SqlPort::run_settle(const Held& jobs) {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> claims;
  std::vector<std::string_view> statuses;
  std::vector<std::int32_t> counted;
  Column<std::string> codes;
  Column<std::string> messages;
  Column<std::int64_t> delays;
  std::vector<bool> in_doubt;
  Column<std::string> ledger;
  Column<std::int32_t> http;
  Column<std::string> digests;
  Column<std::string> payloads;
  std::vector<bool> missing;
  std::vector<std::string_view> hashes;
  JournalColumns journal;
  for (const auto* job : jobs) {
    const auto& verdict = job->verdict;
    const bool writes = verdict.ledger != LedgerWrite::none;
    ids.push_back(job->ticket.id.value);
    claims.push_back(job->ticket.claim.value);
    statuses.push_back(to_string(verdict.status));
    counted.push_back(verdict.attempts - job->row.attempts);
    codes.push_back(text_or_null(job->error_code));
    messages.push_back(text_or_null(job->error_msg));
    delays.push_back(verdict.delay ? std::optional(verdict.delay->count()) : std::nullopt);
    in_doubt.push_back(verdict.in_doubt);
    ledger.push_back(ledger_text(verdict.ledger));
    http.push_back(writes ? std::optional(job->http_status) : std::nullopt);
    digests.push_back(text_or_null(job->result_digest));
    payloads.push_back(text_or_null(job->payload));
    missing.push_back(job->row.ledger == queue::LedgerState::missing);
    hashes.push_back(job->key_hash);
    journal.add(job->tried);
  }
  const auto until = deadline();
  auto* connection = co_await letting_go_.get(until);
  pg::Params params;
  params.add(options_.worker)
      .add(options_.adapter)
      .add(ids)
      .add(claims)
      .add(statuses)
      .add(counted)
      .add(codes);
  params.add(messages).add(delays).add(in_doubt).add(ledger).add(http).add(digests).add(payloads).add(
      missing);
  params.add(hashes).add(journal.broker_ids).add(journal.began).add(journal.ended).add(journal.outcomes);
  params.add(journal.refs);
  co_return co_await connection->query(sql::kSettle, std::move(params), until);
}

Task<void> SqlPort::follow_ledger(const Held& jobs) {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> claims;
  for (const auto* job : jobs) {
    ids.push_back(job->ticket.id.value);
    claims.push_back(job->ticket.claim.value);
  }
  const auto until = deadline();
  auto* connection = co_await letting_go_.get(until);
  pg::Params params(options_.worker, ids, claims);
  const auto rows = co_await connection->query(sql::kFollowLedger, std::move(params), until);
  for (const auto& row : rows) {
    const auto code = row.get<std::string>(2);
    const bool is_conflict = code == reason::kIdempotencyConflict;
    (is_conflict ? metrics_.conflict : metrics_.synced).add();
    log::info("orders", "an order follows its ledger",
              {{"outbox_id", row.get<std::int64_t>(0)},
               {"status", row.get<std::string>(1)},
               {"reason_code", code},
               {"adapter", options_.adapter}});
  }
}

Task<std::vector<Ticket>> SqlPort::journal_fenced(const Held& jobs) {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> claims;
  std::vector<std::string_view> hashes;
  JournalColumns journal;
  for (const auto* job : jobs) {
    if (!job->tried) continue;
    ids.push_back(job->ticket.id.value);
    claims.push_back(job->ticket.claim.value);
    hashes.push_back(job->key_hash);
    journal.add(job->tried);
  }
  std::vector<Ticket> fenced;
  if (ids.empty()) co_return fenced;
  const auto until = deadline();
  auto* connection = co_await letting_go_.get(until);
  pg::Params params(options_.worker, options_.adapter, ids, claims, hashes, journal.broker_ids, journal.began,
                    journal.ended, journal.outcomes, journal.refs);
  const auto rows = co_await connection->query(sql::kJournalFenced, std::move(params), until);
  for (const auto& row : rows) fenced.push_back({{row.get<std::int64_t>(0)}, {row.get<std::int64_t>(1)}});
  co_return fenced;
}

void SqlPort::count(const OrderJob& job) {
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
}

}  // namespace todoke::orders
