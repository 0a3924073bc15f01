#include "jobs/history.hpp"

#include <utility>

#include "jobs/jobs_sql.hpp"

namespace todoke::jobs {
namespace {

constexpr std::chrono::seconds kPurgeMax(30);

}  // namespace

History::History(const Executor& executor, HistoryOptions options, pg::Pool& pool,
                 metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "job history",
                       .failed = "jobs that ended long ago were not removed",
                       .every = options.round_every,
                       .begins_at_once = true},
                      registry),
      options_(options),
      pool_(pool) {}

Task<void> History::round(RoundCause /*cause*/) {
  std::int64_t removed = options_.step_jobs_max;
  while (removed == options_.step_jobs_max && !stop_asked()) {
    const auto deadline = Deadline::after(kPurgeMax);
    const auto lease = co_await pool_.acquire(deadline);
    pg::Params params(seconds_in(options_.keep), options_.step_jobs_max);
    const auto result = co_await lease->query(sql::kPurge, std::move(params), deadline);
    removed = result.affected();
  }
}

}  // namespace todoke::jobs
