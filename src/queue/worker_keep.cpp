// Letting go of rows, and keeping those that are held.
#include <algorithm>
#include <exception>
#include <utility>

#include "base/log.hpp"
#include "pg/error.hpp"
#include "queue/worker.hpp"

namespace todoke::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kSettleRetryFirst = 20ms;
constexpr std::chrono::milliseconds kSettleRetryMost = 1s;
// When a row that somebody else has locked is tried again: later with each time.
constexpr std::chrono::milliseconds kDeferredFirst = 200ms;
constexpr std::chrono::milliseconds kDeferredMost = 2s;
// A heartbeat that failed is repeated this often in a lease.
constexpr int kBeatsInLease = 12;

}  // namespace

bool Worker::is_drained() const {
  const bool no_lanes = std::none_of(lanes_.begin(), lanes_.end(), [](bool there) { return there; });
  if (!claiming_ended_ || !no_lanes || in_flight_ > 0 || !unsettled_.empty()) return false;
  // Rows that nobody will begin, or that somebody has locked, don't keep a worker that has to start anew.
  return loops_.has_failed() ||
         (buffer_.empty() && undecided_.empty() && deferred_.empty() && refunds_.empty());
}

bool Worker::has_to_settle() const {
  return !unsettled_.empty() || (!refunds_.empty() && clock_.steady() >= refunds_at_);
}

bool Worker::has_due_deferred() const {
  return !deferred_.empty() && clock_.steady() >= deferred_until_;
}

Task<void> Worker::settle_loop() {
  while (!is_drained()) {
    // By themselves, so that those which are locked still don't hold up others.
    if (has_due_deferred()) {
      co_await settle(std::exchange(deferred_, {}));
      continue;
    }
    if (!has_to_settle()) {
      settle_wake_.reset();
      // Lanes that end, and rows whose time has come again, are noticed by looking.
      constexpr std::chrono::milliseconds kLookEvery = 20ms;
      if (stopping_ || !deferred_.empty() || !refunds_.empty()) {
        co_await settle_wake_.wait_for(kLookEvery);
      } else {
        co_await settle_wake_.wait();
      }
      continue;
    }
    const auto most = std::min(unsettled_.size(), kSettleMost);
    std::vector<Unsettled> batch(
        std::make_move_iterator(unsettled_.begin()),
        std::make_move_iterator(unsettled_.begin() + static_cast<std::ptrdiff_t>(most)));
    unsettled_.erase(unsettled_.begin(), unsettled_.begin() + static_cast<std::ptrdiff_t>(most));
    if (!batch.empty()) co_await settle(std::move(batch));
    if (!refunds_.empty() && clock_.steady() >= refunds_at_) co_await pay_refunds();
  }
}

// Until it is done: the work is not to be done again because the database was away for a moment. Rows whose
// lease lapses meanwhile are fenced. Rows that are locked wait for the next round.
Task<void> Worker::settle(std::vector<Unsettled> batch) {
  Jobs settled;
  Jobs given_back;
  for (const auto& item : batch) (item.give_back ? given_back : settled).push_back(item.job);
  Backoff backoff(kSettleRetryFirst, kSettleRetryMost);
  std::optional<LetGo> outcome;
  for (;;) {
    outcome = co_await settle_once(settled, given_back);
    if (outcome) break;
    co_await sleep_for(backoff.next());
  }
  metrics_.fenced.add(outcome->fenced.size());
  for (const auto& ticket : outcome->fenced) {
    log::warning("worker", "a job was no longer ours: nothing was settled",
                 {{"id", ticket.id.value}, {"claim_no", ticket.claim.value}});
  }
  auto& locked = outcome->locked;
  std::sort(locked.begin(), locked.end());
  for (auto& item : batch) {
    if (std::binary_search(locked.begin(), locked.end(), item.job->ticket)) {
      defer(std::move(item));
    } else {
      forget(item.job->ticket);
    }
  }
  if (has_more_ || options_.claims_after_settling) wake_.set();
}

void Worker::defer(Unsettled item) {
  // Our own heartbeat locks rows for a moment, too.
  constexpr int kTellAfter = 5;
  if (++item.deferrals == kTellAfter) {
    log::warning("worker", "a row is locked by somebody else: it is settled when that ends",
                 {{"id", item.job->ticket.id.value}});
  }
  const auto pause = std::min(kDeferredMost, kDeferredFirst * item.deferrals);
  if (deferred_.empty() || deferred_until_ > clock_.steady() + pause)
    deferred_until_ = clock_.steady() + pause;
  deferred_.push_back(std::move(item));
}

// None: it is to be repeated.
Task<std::optional<LetGo>> Worker::settle_once(const Jobs& settled, const Jobs& given_back) {
  std::exception_ptr failure;
  const auto began = clock_.steady();
  LetGo outcome;
  try {
    if (!given_back.empty()) outcome = co_await port_.give_back(given_back);
    if (!settled.empty()) {
      const auto more = co_await port_.settle(settled);
      outcome.fenced = more.fenced;
      outcome.locked.insert(outcome.locked.end(), more.locked.begin(), more.locked.end());
      metrics_.commit_seconds.observe(std::chrono::duration<double>(clock_.steady() - began).count());
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return outcome;
  log::warning("worker", "jobs could not be settled, trying again",
               {{"jobs", settled.size() + given_back.size()}, {"error", describe(failure)}});
  // A partition that is missing is made by the port.
  if (!pg::refuses_data(failure) && !pg::waited_for_lock(failure)) co_return std::nullopt;
  co_return co_await settle_one_by_one(settled, given_back);
}

// One of them holds what the server refuses, or needs what somebody has locked: it stays alone with its fate.
Task<LetGo> Worker::settle_one_by_one(const Jobs& settled, const Jobs& given_back) {
  LetGo outcome;
  for (const auto* jobs : {&settled, &given_back}) {
    for (const auto& job : *jobs) {
      const auto one = co_await settle_alone(job, jobs == &given_back);
      outcome.fenced.insert(outcome.fenced.end(), one.fenced.begin(), one.fenced.end());
      outcome.locked.insert(outcome.locked.end(), one.locked.begin(), one.locked.end());
    }
  }
  co_return outcome;
}

Task<LetGo> Worker::settle_alone(JobPtr job, bool give_back) {
  std::exception_ptr failure;
  LetGo outcome;
  const Jobs one{job};
  try {
    if (give_back) {
      outcome = co_await port_.give_back(one);
    } else {
      outcome = co_await port_.settle(one);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure && pg::refuses_data(failure)) {
    log::error("worker", "a job can't be settled, its lease will lapse",
               {{"id", job->ticket.id.value}, {"error", describe(failure)}});
    drop(job->ticket);
  } else if (failure) {
    outcome.locked.push_back(job->ticket);
  }
  co_return outcome;
}

// Until it is done, but for a worker that is to stop.
Task<void> Worker::pay_refunds() {
  const auto refunds = std::exchange(refunds_, {});
  std::exception_ptr failure;
  try {
    co_await port_.refund(refunds);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return;
  log::warning("worker", "attempts that an outage has cost were not given back",
               {{"jobs", refunds.size()}, {"error", describe(failure)}});
  if (stopping_) co_return;
  for (const auto& [id, tries] : refunds) refunds_[id] += tries;
  refunds_at_ = clock_.steady() + kSettleRetryMost;
}

Task<void> Worker::heartbeat_loop() {
  auto next = lease_.heartbeat_every();
  while (!draining_ended_) {
    heartbeat_wake_.reset();
    co_await heartbeat_wake_.wait_for(next);
    if (draining_ended_) break;
    std::exception_ptr failure;
    try {
      co_await beat();
    } catch (...) {
      failure = std::current_exception();
    }
    next = failure ? lease_.lease() / kBeatsInLease : lease_.heartbeat_every();
    if (failure) log::warning("worker", "heartbeat failed", {{"error", describe(failure)}});
  }
}

std::vector<Ticket> Worker::tickets() const {
  std::vector<Ticket> tickets;
  tickets.reserve(held_.size());
  for (const auto& [id, job] : held_) tickets.push_back(job->ticket);
  return tickets;
}

Task<void> Worker::beat() {
  if (held_.empty()) co_return;
  const auto asked = clock_.steady();
  const auto asked_for = tickets();
  auto kept = co_await port_.heartbeat(asked_for);
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.ticket < b.ticket; });
  for (const auto& ticket : asked_for) {
    const auto held = held_.find(ticket.id.value);
    if (held == held_.end() || held->second->ticket != ticket) continue;
    const auto found =
        std::lower_bound(kept.begin(), kept.end(), ticket,
                         [](const Kept& one, const Ticket& wanted) { return one.ticket < wanted; });
    if (found == kept.end() || found->ticket != ticket) {
      // Settled a moment ago, or taken from us.
      held->second->lost = true;
    } else if (found->renewed) {
      held->second->leased_from = asked;
    }
  }
}

Task<void> Worker::house_loop() {
  while (!stopping_) {
    std::exception_ptr failure;
    bool more = false;
    try {
      more = co_await port_.archive();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) log::warning("worker", "finished rows were not archived", {{"error", describe(failure)}});
    if (more || stopping_) continue;
    house_wake_.reset();
    co_await house_wake_.wait_for(options_.archive_every);
  }
}

}  // namespace todoke::queue
