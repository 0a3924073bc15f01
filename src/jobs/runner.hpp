// Does the background jobs of the kinds that this process knows: a worker of src/queue over cn_admin.jobs, as
// a service of the node.
//
// Any number of processes may run one. A few jobs at a time (concurrency); those beyond wait in the table. A
// job whose process died is taken over when its lease has lapsed, with the state that it wrote last. A try
// that fails is repeated after 5 s, 30 s, 2 min and 10 min; after the fifth in a row without progress the job
// is aborted with its last error.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "jobs/kind.hpp"
#include "jobs/port.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "queue/worker.hpp"

namespace todoke::jobs {

struct RunnerOptions {
  // Each has a connection of the background at most times: two leave the consumers of the log theirs.
  std::size_t concurrency = 2;
  // Without a NOTIFY; jobs that wait for another try become due.
  std::chrono::milliseconds poll_every{2'000};
  std::chrono::milliseconds lease{30'000};
  std::vector<std::chrono::seconds> retry_after{std::chrono::seconds(5), std::chrono::seconds(30),
                                                std::chrono::seconds(120), std::chrono::seconds(600)};
};

struct JobMetrics {
  explicit JobMetrics(metrics::Registry& registry);

  metrics::Family<metrics::Counter>& ended;  // todoke_jobs_ended_total{kind,status}
  queue::WorkerMetrics worker;
};

// Calls the function of a job's kind, and makes an outcome of what it says.
class JobsHandler final : public queue::Handler {
 public:
  JobsHandler(const Kinds& kinds, JobsPort& port, int attempts_max, JobMetrics& metrics);

  Task<Ended> handle(queue::Job& job, const queue::Hold& hold) override;
  void on_verdict(queue::Job& job) override;

  // Runs that are under way end at their next keep(), and their jobs are given back.
  void stop() { stopping_ = true; }

 private:
  class JobRun;

  const Kinds& kinds_;
  JobsPort& port_;
  const int attempts_max_;
  JobMetrics& metrics_;
  bool stopping_ = false;
};

class Runner final : public Service {
 public:
  // Everything outlives it; the kinds are complete.
  Runner(Executor executor, const Kinds& kinds, const RunnerOptions& options, pg::Pool& pool,
         pg::Listener& listener, const Clock& clock, metrics::Registry& registry);

  [[nodiscard]] std::string_view name() const override { return worker_.name(); }
  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

 private:
  const Executor executor_;
  pg::Listener& listener_;
  JobMetrics metrics_;
  JobsPort port_;
  JobsHandler handler_;
  queue::Worker worker_;
  pg::Listener::Subscription subscription_;
};

}  // namespace todoke::jobs
