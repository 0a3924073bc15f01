// Letting go of rows, and keeping those that are held.
#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "pg/error.hpp"
#include "queue/worker.hpp"

namespace todoke::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kSettleRetryFirst = 20ms;
constexpr std::chrono::milliseconds kSettleRetryMost = 1s;
// When a row that somebody else has locked is tried again: later with each time.
constexpr std::chrono::milliseconds kLockedFirst = 200ms;
constexpr std::chrono::milliseconds kLockedMost = 2s;
// The worker's own heartbeat locks rows for a moment, too: it logs only rows that it finds locked so often.
constexpr int kLockedTold = 5;
// A heartbeat that failed is repeated this often in a lease.
constexpr int kBeatsInLease = 12;

// A port that forgets a job, or adds one, would settle the wrong rows.
template <class Answers>
void require_one_each(const Answers& answers, std::size_t asked) {
  if (answers.size() != asked) throw std::logic_error("a port must answer once for each job");
}

}  // namespace

bool Worker::is_drained() const {
  const bool no_lanes = std::none_of(lanes_.begin(), lanes_.end(), [](bool there) { return there; });
  if (!claiming_ended_ || !no_lanes || count(Fate::working) > 0 || !ended_.empty()) return false;
  // Rows that nobody will begin, or that somebody has locked, don't keep a worker that has to start anew.
  return loops_.has_failed() || (held_.empty() && owed_.empty());
}

bool Worker::owes_attempts() const {
  return !owed_.empty() && clock_.steady() >= owed_at_;
}

Task<void> Worker::settle_loop() {
  while (!is_drained()) {
    auto batch = next_batch();
    const bool has_batch = !batch.empty();
    if (has_batch) co_await settle_batch(std::move(batch));
    if (owes_attempts()) {
      co_await pay_attempts_back();
    } else if (!has_batch) {
      settle_wake_.reset();
      // Polls for lanes that end and rows whose time has come again.
      constexpr std::chrono::milliseconds kLookEvery = 20ms;
      if (stopping_ || count(Fate::locked) > 0 || !owed_.empty()) {
        co_await settle_wake_.wait_for(kLookEvery);
      } else {
        co_await settle_wake_.wait();
      }
    }
  }
}

// Those that were locked go by themselves, so that they don't hold up others if they still are.
Jobs Worker::next_batch() {
  Jobs batch;
  if (count(Fate::locked) > 0 && clock_.steady() >= locked_until_) {
    batch = jobs_that_are(Fate::locked);
  } else {
    const auto most = static_cast<std::ptrdiff_t>(std::min(ended_.size(), kSettleMost));
    batch.assign(ended_.begin(), ended_.begin() + most);
    ended_.erase(ended_.begin(), ended_.begin() + most);
  }
  for (const auto& job : batch) become(*job, Fate::settling);
  return batch;
}

// Until it is done: the work is not to be done again because the database was away for a moment. Rows whose
// lease lapses meanwhile are lost.
Task<void> Worker::settle_batch(Jobs batch) {
  Backoff backoff(kSettleRetryFirst, kSettleRetryMost);
  std::optional<std::vector<Fate>> fates;
  for (;;) {
    fates = co_await try_settling(batch);
    if (fates) break;
    co_await sleep_for(backoff.next());
  }
  for (std::size_t i = 0; i < batch.size(); ++i) apply_fate(*batch[i], fates->at(i));
  if (has_more_ || options_.claims_after_settling) wake_.set();
}

void Worker::apply_fate(Job& job, Fate fate) {
  if (fate == Fate::dropped) {
    drop(job);
    return;
  }
  // A job that was not tried loses nothing with its row.
  if (fate == Fate::lost && job.outcome.is_try()) {
    metrics_.fenced.add();
    log::warning("worker", "a job was no longer ours: nothing was settled",
                 {{"id", job.ticket.id.value}, {"claim_no", job.ticket.claim.value}});
  }
  if (fate == Fate::locked) {
    if (++job.times_locked == kLockedTold) {
      log::warning("worker", "a row is locked by somebody else: it is settled when that ends",
                   {{"id", job.ticket.id.value}});
    }
    const auto again = clock_.steady() + std::min(kLockedMost, kLockedFirst * job.times_locked);
    locked_until_ = count(Fate::locked) == 0 ? again : std::min(locked_until_, again);
  }
  become(job, fate);
}

// None: it is to be repeated.
Task<std::optional<std::vector<Fate>>> Worker::try_settling(const Jobs& jobs) {
  const auto began = clock_.steady();
  auto fates = co_await attempt(port_.settle(jobs));
  if (fates) {
    require_one_each(*fates, jobs.size());
    metrics_.commit_ms.observe(std::chrono::duration<double, std::milli>(clock_.steady() - began).count());
    co_return std::move(*fates);
  }
  log::warning("worker", "jobs could not be settled, trying again",
               {{"jobs", jobs.size()}, {"error", describe(fates.error())}});
  if (!pg::refuses_data(fates.error()) && !pg::waited_for_lock(fates.error())) co_return std::nullopt;
  co_return co_await settle_one_by_one(jobs);
}

// One of them holds what the server refuses, or needs what somebody has locked: it stays alone with its fate.
Task<std::vector<Fate>> Worker::settle_one_by_one(const Jobs& jobs) {
  std::vector<Fate> fates;
  for (const auto& job : jobs) fates.push_back(co_await settle_alone(job));
  co_return fates;
}

Task<Fate> Worker::settle_alone(const JobPtr& job) {
  const Jobs one{job};
  const auto fates = co_await attempt(port_.settle(one));
  if (fates) {
    require_one_each(*fates, one.size());
    co_return fates->front();
  }
  if (!pg::refuses_data(fates.error())) co_return Fate::locked;
  log::error("worker", "a job can't be settled, its lease will lapse",
             {{"id", job->ticket.id.value}, {"error", describe(fates.error())}});
  co_return Fate::dropped;
}

// Until it is done, but for a worker that is to stop.
Task<void> Worker::pay_attempts_back() {
  const auto tries = std::exchange(owed_, {});
  const auto paid = co_await attempt(port_.uncount(tries));
  if (paid) co_return;
  log::warning("worker", "attempts that an outage has cost were not given back",
               {{"jobs", tries.size()}, {"error", describe(paid.error())}});
  if (stopping_) co_return;
  for (const auto& [id, count] : tries) owed_[id] += count;
  owed_at_ = clock_.steady() + kSettleRetryMost;
}

Task<void> Worker::heartbeat_loop() {
  auto next = lease_.heartbeat_every();
  while (!draining_ended_) {
    heartbeat_wake_.reset();
    co_await heartbeat_wake_.wait_for(next);
    if (draining_ended_) break;
    const auto beaten = co_await attempt(beat());
    next = beaten ? lease_.heartbeat_every() : lease_.lease() / kBeatsInLease;
    if (!beaten) log::warning("worker", "heartbeat failed", {{"error", describe(beaten.error())}});
  }
}

Task<void> Worker::beat() {
  if (held_.empty()) co_return;
  const auto asked = clock_.steady();
  const auto asked_for = tickets();
  const auto leases = co_await port_.heartbeat(asked_for);
  require_one_each(leases, asked_for.size());
  for (std::size_t i = 0; i < asked_for.size(); ++i) {
    const auto held = held_.find(asked_for[i]);
    if (held == held_.end() || leases[i] == Lease::runs_on) continue;
    // Lost: settled a moment ago, or somebody else's.
    held->second->leased_from = leases[i] == Lease::renewed ? asked : SteadyTime::min();
  }
}

}  // namespace todoke::queue
