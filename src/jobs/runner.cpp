#include "jobs/runner.hpp"

#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "pg/channels.hpp"
#include "pg/storable_text.hpp"
#include "queue/worker_name.hpp"

namespace todoke::jobs {
namespace {

using queue::Outcome;
using Ended = queue::Handler::Ended;

// As cn_admin.jobs has it.
constexpr std::size_t kErrorBytesMax = 2'048;
// Kinds by the statuses that a try may have.
constexpr std::size_t kEndedSeriesMax = 256;

queue::WorkerMetrics worker_metrics(metrics::Registry& registry) {
  constexpr const char* kLatency = "todoke_jobs_latency_ms";
  registry.permit_unit(kLatency);
  auto& latency = registry.histograms(kLatency, "Time of a claim and of a settling of background jobs.",
                                      {"phase"}, metrics::milliseconds_buckets());
  return {registry.counter("todoke_jobs_claimed_total", "Background jobs that this process has claimed."),
          registry.counter("todoke_jobs_lease_expired_total",
                           "Background jobs taken over from processes whose lease had lapsed."),
          registry.counter("todoke_jobs_fenced_total",
                           "Background jobs that were another process's when they were to be settled."),
          latency.with({"claim"}),
          latency.with({"settle"}),
          registry.gauge("todoke_jobs_breaker_state", "0: background jobs have nobody to find away.")};
}

queue::WorkerOptions worker_options(const RunnerOptions& options) {
  queue::WorkerOptions worker;
  worker.name = "jobs";
  worker.concurrency = options.concurrency;
  // What waits for a lane is another process's to claim.
  worker.batch = options.concurrency;
  worker.poll_every = options.poll_every;
  worker.lease = options.lease;
  worker.policy = {.attempts_max = static_cast<int>(options.retry_after.size()) + 1,
                   .retry = queue::RetryTable(options.retry_after)};
  return worker;
}

Ended ended(Outcome::Kind kind) {
  return {{.kind = kind}};
}

}  // namespace

JobMetrics::JobMetrics(metrics::Registry& registry)
    : ended(registry.counters("todoke_jobs_ended_total", "Tries of background jobs, by how they ended.",
                              {"kind", "status"}, kEndedSeriesMax)),
      worker(worker_metrics(registry)) {}

class JobsHandler::JobRun final : public Run {
 public:
  JobRun(ClaimedJob& job, JobsPort& port, const bool& stopping)
      : job_(job), port_(port), stopping_(stopping) {}

  [[nodiscard]] std::int64_t id() const override { return job_.ticket.id.value; }
  [[nodiscard]] const std::string& subject() const override { return job_.subject; }
  [[nodiscard]] const std::string& params() const override { return job_.params; }
  [[nodiscard]] const std::string& state() const override { return job_.state; }

  Task<bool> keep(std::int64_t done, std::optional<std::int64_t> total, std::string state) override {
    const auto kept = co_await port_.keep(job_.ticket, done, total, std::move(state));
    job_.row.attempts = 0;
    job_.row.in_doubt = false;
    if (kept == JobsPort::Kept::cancelled) job_.is_cancelled = true;
    was_interrupted_ = kept != JobsPort::Kept::goes_on || stopping_;
    co_return !was_interrupted_;
  }
  [[nodiscard]] bool was_interrupted() const { return was_interrupted_; }

 private:
  ClaimedJob& job_;
  JobsPort& port_;
  const bool& stopping_;
  bool was_interrupted_ = false;
};

JobsHandler::JobsHandler(const Kinds& kinds, JobsPort& port, int attempts_max, JobMetrics& metrics)
    : kinds_(kinds), port_(port), attempts_max_(attempts_max), metrics_(metrics) {}

Task<Ended> JobsHandler::handle(queue::Job& claimed, const queue::Hold& /*hold*/) {
  auto& job = static_cast<ClaimedJob&>(claimed);
  if (job.is_cancelled) co_return ended(Outcome::Kind::done);
  if (queue::next_step(job.row, attempts_max_, false) == queue::Step::give_up) {
    job.error = fmt::format("the process died in each of {} tries", job.row.attempts);
    co_return ended(Outcome::Kind::permanent);
  }
  JobRun run(job, port_, stopping_);
  const auto said = co_await attempt(kinds_.find(job.kind)->work(run));
  if (!said) {
    job.error = pg::storable_text(describe(said.error()), kErrorBytesMax);
    co_return ended(Outcome::Kind::transient);
  }
  if (job.is_cancelled) co_return ended(Outcome::Kind::done);
  if (run.was_interrupted()) co_return ended(Outcome::Kind::untouched);
  if (!*said) {
    job.error = pg::storable_text(said->error().message, kErrorBytesMax);
    co_return ended(Outcome::Kind::permanent);
  }
  job.result = **said;
  co_return ended(Outcome::Kind::done);
}

void JobsHandler::on_verdict(queue::Job& claimed) {
  const auto& job = static_cast<const ClaimedJob&>(claimed);
  const auto status = status_of(job);
  metrics_.ended.with({job.kind, std::string(status)}).add();
  const auto level = job.error.empty() ? log::Level::info : log::Level::warning;
  log::write(level, "jobs", "a try of a job ended",
             {{"job", job.ticket.id.value}, {"kind", job.kind}, {"status", status}, {"error", job.error}});
}

Runner::Runner(Executor executor, const Kinds& kinds, const RunnerOptions& options, pg::Pool& pool,
               pg::Listener& listener, const Clock& clock, metrics::Registry& registry)
    : executor_(std::move(executor)),
      listener_(listener),
      metrics_(registry),
      port_(pool, queue::worker_name(), kinds.names()),
      handler_(kinds, port_, static_cast<int>(options.retry_after.size()) + 1, metrics_),
      worker_(executor_, worker_options(options), port_, handler_, clock, metrics_.worker) {}

Task<void> Runner::start() {
  subscription_ = listener_.subscribe(
      pg::channels::kJobs, [this](const pg::Wake&) { asio::post(executor_, [this] { worker_.wake(); }); });
  co_return;
}

Task<void> Runner::run() {
  const auto ran = co_await attempt(worker_.run());
  subscription_ = {};
  if (!ran) std::rethrow_exception(ran.error());
}

void Runner::stop() {
  handler_.stop();
  worker_.stop();
}

}  // namespace todoke::jobs
