// Keeps the log from growing for ever. Rows older than `keep` go: whole partitions where the log has gone
// beyond them, and small batches of rows in the one that is still written. A mandatory consumer that has not
// read them holds them back, with an alert, until they are older than `keep_max` or the log is larger than
// `bytes_max`; then they go, and every consumer that had not read them needs a rebuild. The last row of the
// log always stays.
//
// It takes the rows that go out of what the consumers recorded, so that `todoke audit` can recount the rest.
//
// One process at a time; bounded work each time. Waits for nobody: a consumer that has locked its offset is
// marked by its own next move (cn_relay.offset_passes), and an open transaction that keeps a partition from
// going puts off that partition, with a line in the log, and not the rest of the round.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/periodic.hpp"
#include "pg/pool.hpp"

namespace todoke::outbox {

struct RetentionOptions {
  std::chrono::milliseconds keep{std::chrono::hours(24 * 30)};
  std::chrono::milliseconds keep_max{std::chrono::hours(24 * 45)};
  std::int64_t bytes_max = 20LL * 1024 * 1024 * 1024;
  std::chrono::milliseconds every{60'000};
};

class LogRetention final : public PeriodicService {
 public:
  LogRetention(const Executor& executor, RetentionOptions options, pg::Pool& pool, HealthBoard& health,
               metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> run() override;

  // Takes keep, keep_max and bytes_max. On the executor; a round under way may take either.
  void set_bounds(const RetentionOptions& options);

  // Also for tests. Does nothing while another process is at it.
  Task<void> round(RoundCause cause) override;

 private:
  Task<void> empty_and_unlock(pg::Connection& connection, Deadline deadline);
  Task<void> empty_log(pg::Connection& connection, Deadline deadline);
  // These two say false when an open transaction is in the way; the next round goes on from there.
  Task<bool> drop_partitions(pg::Connection& connection, Deadline deadline);
  Task<bool> drop(pg::Connection& connection, pg::Row partition, Deadline deadline);
  Task<std::int64_t> measure(pg::Connection& connection, Deadline deadline);
  Task<void> delete_rows(pg::Connection& connection, Deadline deadline);
  // How many rows went.
  Task<std::int64_t> delete_batch(pg::Connection& connection, std::chrono::milliseconds keep,
                                  std::int64_t until_seq, Deadline deadline);
  Task<void> delete_effects(pg::Connection& connection, Deadline deadline);
  // The beginning of a transaction that takes the rows up to `until`.
  Task<pg::Batch> cut_ranges(pg::Connection& connection, std::int64_t until, Deadline deadline);
  Task<void> raise_floor(pg::Connection& connection, std::int64_t dropped_until, Deadline deadline);
  // The last seq that may go, and who says so.
  struct Bound {
    std::int64_t seq;
    std::string consumer;
  };
  Task<Bound> bound(pg::Connection& connection, Deadline deadline);
  void tell_held_back(const std::string& consumer);
  void tell_held_open(bool is_held);

  RetentionOptions options_;
  pg::Pool& pool_;
  HealthBoard& health_;
  metrics::Counter& rows_deleted_;        // todoke_log_rows_deleted_total
  metrics::Counter& partitions_dropped_;  // todoke_log_partitions_dropped_total
  metrics::Gauge& bytes_;                 // todoke_log_bytes
  metrics::Gauge& held_back_;             // todoke_log_held_back
};

}  // namespace todoke::outbox
