// Keeps what is stored from growing for ever: every event goes when its period is over, counted from
// ingested_at and never from created_at.
//
//   regular events         with their week, as whole partitions; events of topics that are kept longer are moved
//                          out of the week before, those of topics with a shorter period go in small batches
//   superseded versions    by themselves, and deleted or expired ones; the current version stays for ever
//   deletion requests      by themselves
//   dedupe rows, tombstones after the events, and a dedupe row never while its event is stored
//
// An event of several topics goes when the longest of their periods is over. Purging writes nothing to the log: the
// event is not invalid, only forgotten. Sent again, it is a duplicate as long as its dedupe row is there.
//
// Every step is a short transaction (purge.hpp), so a run that is killed leaves all consistent, and the next one goes
// on. Waits for nobody: a week that an open transaction holds goes in a later round, which health tells.
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

// What contradicts itself, for people: a period of dedupe rows or tombstones that is shorter than one of regular
// events, topics included. `topic` and `policy`: as if the topic had this ingest_policy. Nothing: all is well.
Task<std::optional<std::string>> period_problem(pg::Connection& connection, RetentionPeriods periods,
                                                std::optional<std::string> topic,
                                                std::optional<std::string> policy, Deadline deadline);

// What a run has done so far.
struct RetentionTotals {
  std::int64_t weeks = 0;
  std::int64_t week_events = 0;
  std::int64_t moved = 0;
  std::int64_t events = 0;  // by themselves
  std::int64_t dedupe_rows = 0;
  std::int64_t tombstones = 0;
  std::int64_t bytes = 0;          // of partitions as they were on disk, of events as topic_usage counts them
  std::optional<SystemTime> held;  // the week that a transaction keeps from going
};

struct RetentionSteps {
  RetentionPeriods periods;
  SystemTime at;
  bool marks = true;  // dedupe rows and tombstones, too: that reads both tables
  std::function<Task<void>()> pause = []() -> Task<void> { co_return; };  // between steps
  std::function<bool()> stop = [] { return false; };                      // asked between steps
  std::function<void(const RetentionTotals&)> progress = [](const auto&) {};
};

// One run, with the purge lock. Nothing: another process is at it.
Task<std::optional<RetentionTotals>> run_retention(pg::Connection& connection, RetentionSteps steps);

// What a run at that time would do; a line for each partition, and for what goes by itself. It reads the whole
// of the tables that it counts.
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
  void tell(const RetentionTotals& totals);
  void tell_periods(const std::optional<std::string>& problem);

  RetentionOptions options_;
  const Clock& clock_;
  HealthBoard& health_;
  SharedValue<RetentionPeriods> periods_;
  std::optional<SystemTime> marks_at_;       // when they were read last
  RetentionTotals counted_;                  // of this round, in the metrics already
  metrics::Counter& weeks_;                  // todoke_retention_partitions_dropped_total
  metrics::Counter& week_events_;            // todoke_retention_partition_rows_total
  metrics::Counter& moved_;                  // todoke_retention_rows_moved_total
  metrics::Family<metrics::Counter>& rows_;  // todoke_retention_rows_deleted_total{table}
  metrics::Gauge& last_run_;                 // todoke_retention_last_run_seconds
  metrics::Gauge& held_;                     // todoke_retention_held_back
};

}  // namespace todoke::relay
