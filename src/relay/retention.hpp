// Keeps what is stored from growing for ever: every event goes when its period is over, counted from
// ingested_at and never from created_at.
//
//   regular events         with their week, as whole partitions; events of topics that are kept longer are
//                          moved out of the week before, those of topics with a shorter period go in small
//                          batches
//   superseded versions    by themselves, and deleted or expired ones; the current version stays for ever
//   deletion requests      by themselves
//   dedupe rows, tombstones after the events, and a dedupe row never while its event is stored
//
// An event of several topics goes when the longest of their periods is over. Purging writes nothing to the
// log: the event is not invalid, only forgotten. Sent again, it is a duplicate as long as its dedupe row is
// there.
//
//   round:  weeks ──▶ topics with a shorter period ──▶ kept events ──▶ lost versions ──▶ dedupe rows,
//           tombstones; each a turn of at most `steps_of_turn` steps, with the purge lock; between two turns
//           others have it
//
// A walk that has not come to its end in its turn goes on in the next round, which follows at once; where it
// is stands in cn_relay.purge_walks, so that whoever comes next goes on there, after a restart too. Every
// step is a short transaction (purge.hpp), so a run that is killed leaves all consistent. Waits for nobody: a
// week that an open transaction holds, and a step that ran into a lock, is put off to the next run; health
// and a counter tell.
//
// Whether an event is old is said by the clock of this machine about times of the database's. Where the two
// are minutes apart (kClockDifferenceMax) nothing is purged, and health tells.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "relay/purge.hpp"

namespace todoke::relay {

RetentionPeriods retention_periods_from(const Config& config);

// What contradicts itself, for people, the worst first: periods of dedupe rows or tombstones that are shorter
// than one of regular events, topics included. `topic` and `policy`: as if the topic had this ingest_policy.
// Empty: all is well. Each is one text such as "retention.dedupe_days (20) must be at least
// retention.regular_days (30)"; a thousand at most.
Task<std::vector<std::string>> period_problems(pg::Connection& connection, RetentionPeriods periods,
                                               std::optional<std::string> topic,
                                               std::optional<std::string> policy, Deadline deadline);
// Pure: all of them as one text, the first ten by name.
std::string period_text(const std::vector<std::string>& problems);
// Pure: those that were not there before. What was wrong before stays changeable: that is how an operator
// mends it.
std::vector<std::string> new_problems(const std::vector<std::string>& before, std::vector<std::string> after);

// What a run has done so far.
struct RetentionTotals {
  std::int64_t weeks = 0;
  std::int64_t week_events = 0;
  std::int64_t moved = 0;
  std::int64_t events = 0;  // by themselves
  std::int64_t dedupe_rows = 0;
  std::int64_t tombstones = 0;
  std::int64_t bytes = 0;          // of partitions as they were on disk, of events as topic_usage counts them
  std::int64_t lock_timeouts = 0;  // steps that ran into somebody's lock
  std::optional<SystemTime> held;  // the week that a transaction keeps from going
};

// Some 50 ms each with their pause, so that capacity waits a few seconds for the purge lock.
inline constexpr int kStepsOfTurn = 100;

struct RetentionSteps {
  RetentionPeriods periods;
  SystemTime at;
  // When the run began: what was walked to its end since then is left out. Nothing: now.
  std::optional<SystemTime> began;
  // Dedupe rows and tombstones are read whole, and only if they were not for so long.
  std::chrono::hours marks_every{0};
  int steps_of_turn = kStepsOfTurn;
  std::chrono::milliseconds lock_wait{5'000};
  std::function<Task<void>()> pause = []() -> Task<void> { co_return; };  // between steps
  std::function<bool()> stop = [] { return false; };                      // asked between steps
  std::function<void(const RetentionTotals&)> progress = [](const auto&) {};
};

struct RetentionRound {
  RetentionTotals totals;
  bool is_through = true;                            // false: another round goes on
  bool is_busy = false;                              // another process has the purge lock
  std::optional<std::chrono::seconds> clocks_apart;  // nothing was done; this machine's is ahead by so much
};
// One turn of everything. `before`: what the rounds before it have done, for `progress`.
Task<RetentionRound> retention_round(pg::Connection& connection, RetentionSteps steps,
                                     RetentionTotals before = {});
// Rounds until one is through. Nothing: another process purges. Throws UserError where the clocks are apart.
Task<std::optional<RetentionTotals>> run_retention(pg::Connection& connection, RetentionSteps steps);
// Pure, for people.
std::string clocks_text(std::chrono::seconds apart);

// What a run at that time would do; a line for each partition, and for what goes by itself. It reads the
// whole of the tables that it counts.
struct PlanLine {
  std::string what;   // "week", "regular", "superseded", "deletion requests", "dedupe rows", "tombstones"
  std::string where;  // the partition of a week, the first topic of regular events
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
  std::int64_t moved = 0;  // events that would be moved out of the week before
};
Task<std::vector<PlanLine>> plan_retention(pg::Connection& connection, RetentionPeriods periods,
                                           SystemTime at, Deadline deadline);

struct RetentionOptions {
  pg::ConnectOptions connect;
  RetentionPeriods periods;
  std::chrono::milliseconds every{600'000};
  // Dedupe rows and tombstones are read whole to find old ones.
  std::chrono::hours marks_every{24};
  // Between steps, so that a run leaves most of the database to others.
  std::chrono::milliseconds step_every{20};
};

// Runs it again and again beside a relay, on a connection of its own.
class Retention final : public PeriodicService {
 public:
  Retention(const Executor& executor, RetentionOptions options, const Clock& clock, HealthBoard& health,
            metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> run() override;
  // From anywhere; a round that is under way goes on with the old ones.
  void set_periods(const RetentionPeriods& periods);

  // Also for tests.
  Task<void> round(RoundCause cause) override;

 private:
  void count(const RetentionTotals& now);
  void tell_held(const RetentionTotals& totals);
  void tell_periods(const std::vector<std::string>& problems);
  void tell_clocks(std::optional<std::chrono::seconds> apart);

  RetentionOptions options_;
  const Clock& clock_;
  HealthBoard& health_;
  SharedValue<RetentionPeriods> periods_;
  std::optional<SystemTime> began_;      // the run that is under way
  RetentionTotals counted_;              // of this round, in the metrics already
  std::optional<SystemTime> held_told_;  // the log tells of each week once
  bool clocks_told_ = false;
  metrics::Counter& weeks_;                  // todoke_retention_partitions_dropped_total
  metrics::Counter& week_events_;            // todoke_retention_partition_rows_total
  metrics::Counter& moved_;                  // todoke_retention_rows_moved_total
  metrics::Family<metrics::Counter>& rows_;  // todoke_retention_rows_deleted_total{table}
  metrics::Gauge& last_run_;                 // todoke_retention_last_run_seconds
  metrics::Gauge& held_;                     // todoke_retention_held_back
  metrics::Counter& lock_timeouts_;          // todoke_retention_lock_timeouts_total
  metrics::Gauge& clocks_apart_;             // todoke_retention_clocks_apart
};

}  // namespace todoke::relay
