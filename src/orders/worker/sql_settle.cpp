// The settling of tries: arrays in, one statement, who was fenced out.
#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "orders/core/timestamp.hpp"
#include "orders/worker/sql_port.hpp"
#include "orders/worker/worker_sql.hpp"
#include "pg/error.hpp"

namespace todoke::orders {
namespace {

using queue::LetGo;
using queue::RowStatus;
using queue::Ticket;

template <class T>
using Column = std::vector<std::optional<T>>;

std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Tickets tickets(const std::vector<OrderJob*>& jobs) {
  Tickets tickets;
  for (const auto* job : jobs) tickets.push_back(job->ticket);
  return tickets;
}

void sort_by_ticket(std::vector<OrderJob*>& jobs) {
  std::sort(jobs.begin(), jobs.end(), [](const auto* a, const auto* b) { return a->ticket < b->ticket; });
}

// The ledger has changed since it was read: the row follows it no more, or it is not where it was to be
// written. Settled as what it is now in the next round.
void read_anew(OrderJob& job) {
  if (job.follows_ledger) {
    job.follows_ledger = false;
    job.verdict = {RowStatus::failed, job.row.attempts, job.row.in_doubt, std::chrono::milliseconds(0)};
  } else {
    const bool was_missing = job.ledger == LedgerState::missing;
    job.ledger = was_missing ? LedgerState::open : LedgerState::missing;
  }
}

// The journal's columns.
struct JournalColumns {
  Column<std::string> broker_ids;
  Column<SystemTime> began;
  Column<SystemTime> ended;
  Column<std::string> outcomes;
  Column<std::string> refs;
  Column<std::string> notes;

  static inline const std::optional<TryRecord> kNone;

  void add(const OrderJob& job) {
    const auto& tried = job.is_journaled ? kNone : job.tried;
    broker_ids.push_back(tried ? std::optional(tried->broker_id) : std::nullopt);
    began.push_back(tried ? std::optional(tried->began_at) : std::nullopt);
    ended.push_back(tried ? std::optional(tried->ended_at) : std::nullopt);
    outcomes.push_back(tried ? std::optional(tried->outcome) : std::nullopt);
    refs.push_back(tried ? tried->broker_ref : std::nullopt);
    notes.push_back(tried ? text_or_null(tried->note) : std::nullopt);
  }
};

}  // namespace

Task<LetGo> SqlPort::settle(const queue::Jobs& jobs) {
  Held tries;
  Held following;
  for (const auto& job : jobs) {
    auto* order = static_cast<OrderJob*>(job.get());
    (order->follows_ledger ? following : tries).push_back(order);
  }
  LetGo outcome;
  if (!tries.empty()) co_await settle_tries(tries, following);
  if (!following.empty()) co_await follow_ledger(following);
  options_.on_settled();
  auto left = tickets(tries);
  for (const auto* job : following) left.push_back(job->ticket);
  outcome.locked = co_await still_held(letting_go_, std::move(left));
  std::erase_if(tries, [&](const OrderJob* job) { return has(outcome.locked, job->ticket); });
  if (!tries.empty()) outcome.fenced = co_await journal_fenced(tries);
  co_return outcome;
}

Task<LetGo> SqlPort::give_back(const queue::Jobs& jobs) {
  Held pending;
  Held following;
  for (const auto& job : jobs) {
    auto* order = static_cast<OrderJob*>(job.get());
    // A row that waits beside a failure in the ledger counts as requeued; this one was not.
    const bool follows = order->row.lapsed && order->ledger == LedgerState::failed;
    (follows ? following : pending).push_back(order);
  }
  if (!pending.empty()) co_await give_back_rows(pending);
  if (!following.empty()) co_await follow_ledger(following);
  auto left = tickets(pending);
  for (const auto* job : following) left.push_back(job->ticket);
  LetGo outcome;
  outcome.locked = co_await still_held(letting_go_, std::move(left));
  co_return outcome;
}

Task<void> SqlPort::give_back_rows(Held& jobs) {
  const auto until = deadline();
  auto* connection = co_await letting_go_.get(until);
  const TicketArrays arrays(tickets(jobs));
  pg::Params params(options_.worker, arrays.ids, arrays.claims);
  const auto rows = co_await connection->query(sql::kGiveBack, std::move(params), until);
  const auto done = tickets_of(rows);
  std::erase_if(jobs, [&](const OrderJob* job) { return has(done, job->ticket); });
}

Task<void> SqlPort::settle_tries(Held& jobs, Held& diverted) {
  sort_by_ticket(jobs);
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
  Tickets held;
  Tickets settled;
  for (const auto& row : rows) {
    (row.get<bool>(2) ? settled : held).push_back(ticket_of(row));
  }
  held = sorted(std::move(held));
  settled = sorted(std::move(settled));
  for (auto* job : jobs) {
    if (has(settled, job->ticket)) {
      tell_settled(*job);
    } else if (has(held, job->ticket)) {
      job->is_journaled = true;
      diverted.push_back(job);
    }
  }
  std::erase_if(jobs, [&](const OrderJob* job) { return has(held, job->ticket); });
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
  std::vector<bool> key_was_taken;
  JournalColumns journal;
  for (const auto* job : jobs) {
    const auto& verdict = job->verdict;
    const auto ledger_status = ledger_status_of(verdict.status);
    ids.push_back(job->ticket.id.value);
    claims.push_back(job->ticket.claim.value);
    statuses.push_back(to_string(verdict.status));
    counted.push_back(verdict.attempts - job->row.attempts);
    codes.push_back(text_or_null(job->error_code));
    messages.push_back(text_or_null(job->error_msg));
    delays.push_back(verdict.delay ? std::optional(verdict.delay->count()) : std::nullopt);
    in_doubt.push_back(verdict.in_doubt);
    ledger.emplace_back(ledger_status);
    http.push_back(ledger_status ? std::optional(job->http_status) : std::nullopt);
    digests.push_back(text_or_null(job->result_digest));
    payloads.push_back(text_or_null(job->payload));
    missing.push_back(job->ledger == LedgerState::missing);
    hashes.push_back(job->key_hash);
    key_was_taken.push_back(job->key_was_taken);
    journal.add(*job);
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
  params.add(journal.refs).add(journal.notes).add(key_was_taken);
  co_return co_await connection->query(sql::kSettle, std::move(params), until);
}

Task<void> SqlPort::follow_ledger(Held& jobs) {
  sort_by_ticket(jobs);
  const auto until = deadline();
  auto* connection = co_await letting_go_.get(until);
  const TicketArrays arrays(tickets(jobs));
  pg::Params params(options_.worker, arrays.ids, arrays.claims);
  const auto rows = co_await connection->query(sql::kFollowLedger, std::move(params), until);
  Tickets held;
  Tickets settled;
  for (const auto& row : rows) {
    const auto ticket = ticket_of(row);
    if (!row.get<std::optional<std::string>>("status")) {
      held.push_back(ticket);
      continue;
    }
    settled.push_back(ticket);
    const auto job =
        std::lower_bound(jobs.begin(), jobs.end(), ticket,
                         [](const OrderJob* one, const Ticket& wanted) { return one->ticket < wanted; });
    tell_followed(**job, row);
  }
  settled = sorted(std::move(settled));
  std::erase_if(jobs, [&](const OrderJob* job) { return has(settled, job->ticket); });
  held = sorted(std::move(held));
  for (auto* job : jobs) {
    if (has(held, job->ticket)) read_anew(*job);
  }
}

Task<Tickets> SqlPort::journal_fenced(const Held& jobs) {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> claims;
  std::vector<std::string_view> hashes;
  JournalColumns journal;
  for (const auto* job : jobs) {
    if (!job->tried || job->is_journaled) continue;
    ids.push_back(job->ticket.id.value);
    claims.push_back(job->ticket.claim.value);
    hashes.push_back(job->key_hash);
    journal.add(*job);
  }
  Tickets fenced;
  if (ids.empty()) co_return fenced;
  const auto until = deadline();
  auto* connection = co_await letting_go_.get(until);
  pg::Params params(options_.worker, options_.adapter, ids, claims, hashes, journal.broker_ids, journal.began,
                    journal.ended, journal.outcomes, journal.refs, journal.notes);
  const auto rows = co_await connection->query(sql::kJournalFenced, std::move(params), until);
  Tickets settled;
  for (const auto& row : rows) {
    (row.get<bool>(2) ? fenced : settled).push_back(ticket_of(row));
  }
  settled = sorted(std::move(settled));
  for (const auto* job : jobs) {
    if (has(settled, job->ticket)) tell_settled(*job);
  }
  co_return fenced;
}

void SqlPort::tell_settled(const OrderJob& job) {
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
  // Failures are told one by one, whatever their number.
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

void SqlPort::tell_followed(const OrderJob& job, const pg::Row& row) {
  const auto code = row.get<std::string>("code");
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
