// Takes rows from a table and has them worked on: any number of workers, in any number of processes.
//
//   claim loop --buffer--> lanes (concurrency) --unsettled--> settle loop
//   heartbeat loop: all rows held, one statement      house loop: archive
//
// Woken by wake() and looks by itself every `poll_every`. Rows are settled in batches of what has gathered
// while the last settling was under way; a settling that fails is repeated without doing the work again, and
// a row that somebody else has locked waits alone. At stop() rows that were not begun are given back, and
// what is under way is finished and settled.
//
// Fail-stop: when a loop dies all of them end, as at stop(), and run() throws. Rows that could not be settled
// by then are left to their leases, in doubt for whoever takes them over. run() may be called again.
//
// Bounded: rows claimed ahead (batch), rows taken over (kTakenMost), rows not yet settled (kUnsettledMax:
// beyond it nothing is claimed), rows in one settling (kSettleMost; those that were locked, all
// of them), rows dropped (kDroppedMax).
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/hash_table.hpp"
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
  std::chrono::milliseconds archive_every{60'000};
  // A row that is settled may make another one claimable (order between rows).
  bool claims_after_settling = false;
  BreakerOptions breaker = {};
};

struct WorkerMetrics {
  metrics::Counter& claimed;
  metrics::Counter& lease_expired;
  metrics::Counter& fenced;
  metrics::Histogram& claim_seconds;
  metrics::Histogram& commit_seconds;
  metrics::Gauge& breaker;  // 0 closed, 1 ramping, 2 probing, 3 open
};

class Worker final : public Service {
 public:
  // Room for four of the largest batches that make a statement cheaper.
  static constexpr std::size_t kUnsettledMax = 4'096;
  static constexpr std::size_t kSettleMost = 1'024;
  // Rows of workers that vanished are taken as fast as they come until so many wait here.
  static constexpr std::size_t kTakenMost = 2'048;
  // Beyond it claims whose answers were lost are left to their leases.
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
  struct Unsettled {
    JobPtr job;
    bool give_back = false;
    int deferrals = 0;
  };
  class JobHold;

  void launch_lanes();
  void wind_down();
  void leave_to_leases();
  Task<void> claim_loop();
  Task<bool> take_over_some();
  Task<bool> claim_some(bool is_time);
  Task<void> give_back_unknown();
  [[nodiscard]] std::vector<Ticket> tickets() const;
  [[nodiscard]] std::size_t room();
  [[nodiscard]] std::chrono::milliseconds idle_wait() const;
  void deliver(Jobs jobs, bool first);

  Task<void> lane(std::size_t index);
  [[nodiscard]] bool can_start();
  Task<void> process(JobPtr job);
  void conclude(const JobPtr& job, Handler::Ended ended);
  void refund(std::map<JobId, int> refunds);
  void decide();
  void decide_when_idle();
  void give_back_buffer();
  void let_go(JobPtr job, bool give_back);
  void forget(const Ticket& ticket);
  void drop(const Ticket& ticket);

  Task<void> settle_loop();
  [[nodiscard]] bool has_due_deferred() const;
  [[nodiscard]] bool has_to_settle() const;
  Task<void> settle(std::vector<Unsettled> batch);
  Task<std::optional<LetGo>> settle_once(const Jobs& settled, const Jobs& given_back);
  Task<LetGo> settle_one_by_one(const Jobs& settled, const Jobs& given_back);
  Task<LetGo> settle_alone(JobPtr job, bool give_back);
  void defer(Unsettled item);
  Task<void> pay_refunds();
  [[nodiscard]] bool is_drained() const;

  Task<void> heartbeat_loop();
  Task<void> beat();
  Task<void> house_loop();
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

  HashMap<std::int64_t, JobPtr> held_;  // by id: claimed and not yet let go
  std::deque<JobPtr> buffer_;           // claimed, not begun
  std::deque<Unsettled> unsettled_;
  // Their last try found nobody. If the breaker opens by it, it does not count: they wait until another job
  // has reached somebody, the breaker has opened, or nothing else is under way. Fewer than open the breaker.
  std::vector<JobPtr> undecided_;
  std::vector<Unsettled> deferred_;  // somebody else has locked their rows
  SteadyTime deferred_until_{};
  std::map<JobId, int> refunds_;
  SteadyTime refunds_at_{};
  // Rows that were begun and could be neither settled nor given back: left to their leases. Since when.
  std::map<Ticket, SteadyTime> dropped_;
  SteadyTime unknown_left_until_{};  // there were too many to remember: what is not known may be one of them
  std::size_t in_flight_ = 0;
  std::vector<bool> lanes_;  // which are there
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
  Signal house_wake_;
  Loops loops_;
};

}  // namespace todoke::queue
