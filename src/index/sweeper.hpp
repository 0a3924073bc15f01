// Removes documents whose event has been purged. They are not shown before that either; this gives their
// space back.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/periodic.hpp"
#include "pg/pool.hpp"

namespace todoke::index {

struct SweepStep {
  std::string last_id;  // where the next step begins; empty: the end was reached
  std::int64_t removed = 0;
};

// Looks at the next `documents_max` documents after the id `after`, in one small transaction.
Task<SweepStep> sweep_purged(pg::Connection& connection, std::string after, std::int64_t documents_max,
                             Deadline deadline);

struct SweeperOptions {
  std::chrono::milliseconds round_every{600'000};
  // Between steps, so that a round leaves the database to others most of the time.
  std::chrono::milliseconds step_every{50};
  std::int64_t step_documents_max = 1'000;
};

// Goes through all documents every `round_every`. Any number of instances may run.
class Sweeper final : public PeriodicService {
 public:
  Sweeper(const Executor& executor, SweeperOptions options, pg::Pool& pool, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }

 private:
  Task<void> round(RoundCause cause) override;

  SweeperOptions options_;
  pg::Pool& pool_;
  metrics::Counter& removed_;  // todoke_index_swept_total
};

}  // namespace todoke::index
