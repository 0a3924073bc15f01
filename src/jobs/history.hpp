// Removes jobs that ended long ago.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/periodic.hpp"
#include "pg/pool.hpp"

namespace todoke::jobs {

struct HistoryOptions {
  std::chrono::hours keep{24 * 30};
  std::chrono::milliseconds round_every{3'600'000};
  std::int64_t step_jobs_max = 1'000;
};

// Looks every hour, in small steps. Any number of instances may run.
class History final : public PeriodicService {
 public:
  History(const Executor& executor, HistoryOptions options, pg::Pool& pool, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }

 private:
  Task<void> round(RoundCause cause) override;

  const HistoryOptions options_;
  pg::Pool& pool_;
};

}  // namespace todoke::jobs
