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

constexpr std::chrono::milliseconds kRetryFirst = 20ms;
constexpr std::chrono::milliseconds kRetryMost = 1s;
// A heartbeat that failed is repeated this often in a lease.
constexpr int kBeatsInLease = 12;

}  // namespace

bool Worker::is_drained() const {
  const bool no_lanes = std::none_of(lanes_.begin(), lanes_.end(), [](bool there) { return there; });
  return stopping_ && no_lanes && in_flight_ == 0 && buffer_.empty() && unsettled_.empty() &&
         refunds_.empty();
}

Task<void> Worker::settle_loop() {
  while (!is_drained()) {
    if (unsettled_.empty() && refunds_.empty()) {
      settle_wake_.reset();
      // Lanes that end and the claim loop's last words are noticed by looking.
      constexpr std::chrono::milliseconds kLookEvery = 20ms;
      if (stopping_) {
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
    if (!refunds_.empty()) co_await pay_refunds();
  }
}

// Until it is done: the work is not to be done again because the database was away for a moment. Rows whose
// lease lapses meanwhile are fenced.
Task<void> Worker::settle(std::vector<Unsettled> batch) {
  Jobs settled;
  Jobs given_back;
  for (auto& item : batch) (item.give_back ? given_back : settled).push_back(std::move(item.job));
  Backoff backoff(kRetryFirst, kRetryMost);
  bool is_done = false;
  while (!is_done) {
    is_done = co_await settle_once(settled, given_back);
    if (!is_done) co_await sleep_for(backoff.next());
  }
  for (const auto& job : settled) held_.erase(job->ticket.id.value);
  for (const auto& job : given_back) held_.erase(job->ticket.id.value);
  if (has_more_ || options_.claims_after_settling) wake_.set();
}

Task<bool> Worker::settle_once(const Jobs& settled, const Jobs& given_back) {
  std::exception_ptr failure;
  const auto began = clock_.steady();
  try {
    if (!given_back.empty()) co_await port_.give_back(given_back);
    if (!settled.empty()) {
      const auto fenced = co_await port_.settle(settled);
      metrics_.fenced.add(fenced.size());
      for (const auto& ticket : fenced) {
        log::warning("worker", "a job was no longer ours: nothing was settled",
                     {{"id", ticket.id.value}, {"claim_no", ticket.claim.value}});
      }
      metrics_.commit_ms.observe(std::chrono::duration<double, std::milli>(clock_.steady() - began).count());
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return true;
  log::warning("worker", "jobs could not be settled, trying again",
               {{"jobs", settled.size() + given_back.size()}, {"error", describe(failure)}});
  // A partition that is missing is made by the port.
  if (!pg::refuses_data(failure)) co_return false;
  co_await settle_one_by_one(settled, given_back);
  co_return true;
}

// One of them holds what the server refuses: it stays alone with its fate.
Task<void> Worker::settle_one_by_one(const Jobs& settled, const Jobs& given_back) {
  for (const auto& job : settled) {
    std::exception_ptr failure;
    const Jobs one{job};
    try {
      co_await port_.settle(one);
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      log::error("worker", "a job can't be settled, its lease will lapse",
                 {{"id", job->ticket.id.value}, {"error", describe(failure)}});
    }
  }
  std::exception_ptr failure;
  try {
    if (!given_back.empty()) co_await port_.give_back(given_back);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    log::error("worker", "jobs were not given back, their leases will lapse", {{"error", describe(failure)}});
  }
}

Task<void> Worker::pay_refunds() {
  const auto refunds = std::exchange(refunds_, {});
  std::exception_ptr failure;
  try {
    co_await port_.refund(refunds);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) {
    log::warning("worker", "attempts that an outage has cost were not given back",
                 {{"jobs", refunds.size()}, {"error", describe(failure)}});
  }
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
  std::sort(kept.begin(), kept.end());
  for (const auto& ticket : asked_for) {
    const auto held = held_.find(ticket.id.value);
    if (held == held_.end() || held->second->ticket != ticket) continue;
    if (std::binary_search(kept.begin(), kept.end(), ticket)) {
      held->second->leased_from = asked;
    } else {
      // Settled a moment ago, or taken from us.
      held->second->lost = true;
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
