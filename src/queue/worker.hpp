// Claims rows of a table and has them worked on: any number of workers, in any number of processes.
//
//   claim loop --waiting--> lanes (concurrency) --ended--> settle loop      (fate.hpp has the life of a job)
//   heartbeat loop: renews all rows held, one statement
//
// Woken by wake(), and polls every `poll_every`. The settle loop writes in one call all jobs that ended
// during the last call. It repeats a call that fails, and the work is not done again; a row that somebody
// else has locked waits alone. At stop() the worker gives back rows that it has not begun, and finishes and
// settles the others.
//
// Fail-stop: when a loop dies all of them end, as at stop(), and run() throws. Rows that could not be settled
// by then are dropped. run() may be called again.
//
// Bounded: rows claimed ahead (batch), rows taken over (kTakenMost), rows not yet settled (kUnsettledMax:
// beyond it nothing is claimed), rows in one settling (kSettleMost; those that were locked, all of them),
// rows dropped (kDroppedMax).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/loops.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "queue/lease_clock.hpp"
#include "queue/port.hpp"

namespace todoke::queue {

struct WorkerOptions {
  std::string name = "worker";
  std::size_t concurrency = 4;
  std::size_t batch = 32;
  std::chrono::milliseconds poll_every{500};
  std::chrono::milliseconds lease{120'000};
  std::chrono::milliseconds take_over_every{1'000};
  // A row that is settled may make another one claimable (order between rows).
  bool claims_after_settling = false;
  Policy policy = {};
  BreakerOptions breaker = {};
};

struct WorkerMetrics {
  metrics::Counter& claimed;
  metrics::Counter& lease_expired;
  metrics::Counter& fenced;
  metrics::Histogram& claim_ms;
  metrics::Histogram& commit_ms;
  metrics::Gauge& breaker;  // 0 closed, 1 ramping, 2 probing, 3 open
};

class Worker final : public Service {
 public:
  // Room for four of the largest batches that make a statement cheaper.
  static constexpr std::size_t kUnsettledMax = 4'096;
  static constexpr std::size_t kSettleMost = 1'024;
  // Rows of workers that vanished are taken as fast as they come until so many wait here.
  static constexpr std::size_t kTakenMost = 2'048;
  // Beyond it claims whose answers were lost end with their leases.
  static constexpr std::size_t kDroppedMax = 4'096;

  // Everything outlives the worker.
  Worker(Executor executor, WorkerOptions options, Port& port, Handler& handler, const Clock& clock,
         WorkerMetrics metrics);
  ~Worker() override;

  [[nodiscard]] std::string_view name() const override { return options_.name; }
  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

  // There may be rows. On the worker's executor.
  void wake() { wake_.set(); }

  // On its executor, whether it runs or not.
  void set_concurrency(std::size_t concurrency);
  void set_lease(std::chrono::milliseconds lease);

  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] Breaker::State breaker() const { return breaker_.state(); }

 private:
  class JobHold;

  // Every change of a job's fate.
  void become(Job& job, Fate fate);
  [[nodiscard]] std::size_t count(Fate fate) const { return counts_.at(static_cast<std::size_t>(fate)); }
  [[nodiscard]] Jobs jobs_that_are(Fate fate) const;
  [[nodiscard]] std::vector<Ticket> tickets() const;

  void launch_lanes();
  void wind_down();
  void drop_all();

  Task<void> claim_loop();
  Task<bool> take_over_some();
  Task<bool> claim_some(bool is_time);
  Task<void> give_back_unknown();
  [[nodiscard]] std::size_t room();
  [[nodiscard]] std::chrono::milliseconds idle_wait() const;
  void line_up(Jobs jobs, bool first);

  Task<void> lane(std::size_t index);
  [[nodiscard]] bool can_start();
  Task<void> process(JobPtr job);
  void conclude(const JobPtr& job, const Handler::Ended& ended);
  void judge_job(Job& job, bool counts);
  void end(const JobPtr& job);
  void end_undecided();
  void end_undecided_when_idle();
  void give_back_waiting();
  void uncount_tries(std::map<JobId, int> tries);
  void drop(Job& job);

  Task<void> settle_loop();
  [[nodiscard]] bool is_drained() const;
  [[nodiscard]] bool owes_attempts() const;
  Jobs next_batch();
  Task<void> settle_batch(Jobs batch);
  Task<std::optional<std::vector<Fate>>> try_settling(const Jobs& jobs);
  Task<std::vector<Fate>> settle_one_by_one(const Jobs& jobs);
  Task<Fate> settle_alone(const JobPtr& job);
  void apply_fate(Job& job, Fate fate);
  Task<void> pay_attempts_back();

  Task<void> heartbeat_loop();
  Task<void> beat();
  void show_breaker();

  Executor executor_;
  WorkerOptions options_;
  LeaseClock lease_;
  Port& port_;
  Handler& handler_;
  const Clock& clock_;
  WorkerMetrics metrics_;
  Breaker breaker_;
  Breaker::State breaker_shown_ = Breaker::State::closed;
  std::minstd_rand random_{std::random_device{}()};

  std::map<Ticket, JobPtr> held_;             // every job, until it is settled, lost or dropped
  std::array<std::size_t, kFates> counts_{};  // of held_, by fate
  std::deque<JobPtr> waiting_;                // those that are waiting, in line for a lane
  std::deque<JobPtr> ended_;                  // those that have ended, in line to be settled
  SteadyTime locked_until_{};                 // when those that are locked are tried again
  std::map<JobId, int> owed_;                 // attempts to be taken back from rows that are settled
  SteadyTime owed_at_{};
  // Tickets of jobs that were dropped, and since when: rows that this worker has begun although it does not
  // hold them.
  std::map<Ticket, SteadyTime> dropped_;
  SteadyTime unknown_left_until_{};  // there were too many to remember: what is not known may be one of them
  std::vector<bool> lanes_;          // which are there
  SteadyTime take_over_at_{};
  SteadyTime poll_at_{};
  bool claim_failed_ = false;                // rows may be ours of which we know nothing
  bool has_more_ = true;                     // the last claim got all that it asked for
  std::chrono::milliseconds claim_rest_{0};  // what a slow claim leaves to others before the next
  bool stop_asked_ = false;
  bool stopping_ = true;  // it does not run, or was asked to stop, or a loop has died
  bool claiming_ended_ = false;
  bool draining_ended_ = false;

  Signal wake_;
  Signal lanes_wake_;
  Signal settle_wake_;
  Signal heartbeat_wake_;
  Loops loops_;
};

}  // namespace todoke::queue
