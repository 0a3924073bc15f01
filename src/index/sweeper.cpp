#include "index/sweeper.hpp"

#include <utility>

#include "base/log.hpp"
#include "index/documents_sql.hpp"

namespace todoke::index {
namespace {

constexpr std::chrono::seconds kStepMax(30);

}  // namespace

Task<SweepStep> sweep_purged(pg::Connection& connection, std::string after, std::int64_t documents_max,
                             Deadline deadline) {
  pg::Params params(after, documents_max);
  const auto rows = co_await connection.query(sql::kSweepDocuments, std::move(params), deadline);
  const auto row = rows.one();
  SweepStep step;
  step.removed = row.get<std::int64_t>(2);
  if (row.get<std::int64_t>(1) == documents_max) step.last_id = row.get<std::string>(0);
  co_return step;
}

Sweeper::Sweeper(const Executor& executor, SweeperOptions options, pg::Pool& pool,
                 metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "index sweeper",
                       .failed = "the sweep was interrupted, the next round begins anew",
                       .every = options.round_every,
                       .begins_at_once = true},
                      registry),
      options_(options),
      pool_(pool),
      removed_(registry.counter("todoke_index_swept_total",
                                "Search documents that were removed because their event had been purged.")) {}

Task<void> Sweeper::round(RoundCause /*cause*/) {
  std::string after;
  std::int64_t removed = 0;
  do {
    {
      const auto deadline = Deadline::after(kStepMax);
      const auto lease = co_await pool_.acquire(deadline);
      auto step = co_await sweep_purged(*lease, after, options_.step_documents_max, deadline);
      after = std::move(step.last_id);
      removed += step.removed;
      removed_.add(static_cast<std::uint64_t>(step.removed));
    }
    co_await pause(options_.step_every);
  } while (!after.empty() && !stop_asked());
  if (removed > 0) log::info("index", "documents of purged events removed", {{"documents", removed}});
}

}  // namespace todoke::index
