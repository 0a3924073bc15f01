#include "relay/retention.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/timestamp.hpp"
#include "relay/config.hpp"
#include "relay/purge_pages.hpp"
#include "relay/purge_sql.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kStepMax(30);
// A walk reads this many rows for what it purges of them, so that what has to stay is passed over quickly.
constexpr std::int64_t kWalkRows = 200;
// A megabyte of a table: some ten milliseconds from a disk.
constexpr std::int64_t kWalkBlocks = 128;

Deadline step_deadline() {
  return Deadline::after(kStepMax);
}

std::string day_of(SystemTime time) {
  return format_timestamp(time, 0).substr(0, 10);
}

// One run through everything. Each function leaves off when a stop is asked for.
class Run {
 public:
  Run(pg::Connection& connection, RetentionSteps steps) : connection_(connection), steps_(std::move(steps)) {}

  Task<void> all() {
    // What a process has left that was killed.
    co_await connection_.query(sql::kDropDetached, {}, step_deadline());
    co_await weeks();
    co_await short_topics();
    co_await walk(sql::kPageOfKept);
    co_await walk(sql::kPageOfLostVersions);
    if (!steps_.marks) co_return;
    pg::Params none;
    const auto blocks = co_await connection_.query(sql::kBlocks, std::move(none), step_deadline());
    co_await marks(sql::kPurgeDedupe, blocks.one().get<std::int64_t>(0), steps_.periods.dedupe,
                   totals_.dedupe_rows);
    co_await marks(sql::kPurgeTombstones, blocks.one().get<std::int64_t>(1), steps_.periods.tombstone,
                   totals_.tombstones);
  }
  [[nodiscard]] const RetentionTotals& totals() const { return totals_; }

 private:
  Task<void> weeks() {
    const auto old = co_await old_weeks(connection_, steps_.at, steps_.periods.regular, step_deadline());
    for (const auto& week : old) {
      if (steps_.stop()) co_return;
      co_await empty_week(week.begins);
      if (steps_.stop()) co_return;
      const auto dropped = co_await drop_week(connection_, week.begins, step_deadline());
      if (!dropped) {
        // Later weeks are held as well: what holds one has read them all.
        totals_.held = week.begins;
        co_return;
      }
      ++totals_.weeks;
      totals_.week_events += dropped->events;
      totals_.bytes += dropped->bytes;
      log::info("retention", "a week of events was dropped",
                {{"week", day_of(week.begins)}, {"events", dropped->events}, {"bytes", dropped->bytes}});
      co_await breathe();
    }
  }

  Task<void> empty_week(SystemTime week) {
    while (!steps_.stop()) {
      const auto moved =
          co_await keep_some_of_week(connection_, week, steps_.at, steps_.periods.regular, step_deadline());
      if (moved == 0) co_return;
      totals_.moved += moved;
      co_await breathe();
    }
  }

  Task<void> short_topics() {
    const auto topics =
        co_await connection_.query(sql::kShortTopics, {steps_.periods.regular}, step_deadline());
    for (const auto& row : topics) co_await short_topic(row.get<std::string>(0), row.get<std::int32_t>(1));
    if (!topics.empty()) co_await walk(sql::kPageOfLostRegular);
  }

  Task<void> short_topic(std::string topic, std::int32_t days) {
    std::int64_t after = 0;
    while (!steps_.stop()) {
      pg::Params params(topic, after, steps_.at, kWalkRows, steps_.periods.regular, days);
      const auto page = co_await connection_.query(sql::kPageOfTopic, std::move(params), step_deadline());
      const auto row = page.one();
      co_await purge(due_events(row, 2));
      if (row.get<std::int64_t>(0) < kWalkRows) co_return;
      after = row.get<std::int64_t>(1);
    }
  }

  // In the order of a time and an id; the page's statement says which.
  Task<void> walk(pg::Statement statement) {
    SystemTime after{};
    std::string after_id;
    while (!steps_.stop()) {
      pg::Params params(after, after_id, steps_.at, kWalkRows, steps_.periods.regular,
                        steps_.periods.superseded, steps_.periods.deletion);
      const auto page = co_await connection_.query(statement, std::move(params), step_deadline());
      const auto row = page.one();
      co_await purge(due_events(row, 3));
      if (row.get<std::int64_t>(0) < kWalkRows) co_return;
      after = row.get<SystemTime>(1);
      after_id = row.get<std::string>(2);
    }
  }

  Task<void> purge(DueEvents due) {
    const auto gone = co_await purge_events(connection_, std::move(due), step_deadline());
    totals_.events += gone.events;
    totals_.bytes += gone.bytes;
    co_await breathe();
  }

  Task<void> marks(pg::Statement statement, std::int64_t blocks, std::int32_t days, std::int64_t& gone) {
    for (std::int64_t block = 0; block < blocks && !steps_.stop(); block += kWalkBlocks) {
      pg::Params params(block, block + kWalkBlocks, steps_.at, days, steps_.periods.regular);
      const auto deleted = co_await connection_.query(statement, std::move(params), step_deadline());
      gone += static_cast<std::int64_t>(deleted.affected());
      co_await breathe();
    }
  }

  Task<void> breathe() {
    steps_.progress(totals_);
    co_await steps_.pause();
  }

  pg::Connection& connection_;
  RetentionSteps steps_;
  RetentionTotals totals_;
};

}  // namespace

RetentionPeriods retention_periods_from(const Config& config) {
  const auto days = [&](const Key<std::int64_t>& key) { return static_cast<std::int32_t>(config.get(key)); };
  return {.regular = days(keys::kRegularDays),
          .superseded = days(keys::kSupersededDays),
          .deletion = days(keys::kDeletionDays),
          .tombstone = days(keys::kTombstoneDays),
          .dedupe = days(keys::kDedupeDays)};
}

Task<std::optional<std::string>> period_problem(pg::Connection& connection, RetentionPeriods periods,
                                                std::optional<std::string> topic,
                                                std::optional<std::string> policy, Deadline deadline) {
  pg::Params params(periods.regular, periods.tombstone, periods.dedupe, topic, policy);
  const auto rows = co_await connection.query(sql::kPeriodProblem, std::move(params), deadline);
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.one();
  co_return fmt::format("{} ({}) must be at least {} ({}): what was purged could come back as news",
                        row.get<std::string>(0), row.get<std::int32_t>(1), row.get<std::string>(2),
                        row.get<std::int32_t>(3));
}

Task<std::optional<RetentionTotals>> run_retention(pg::Connection& connection, RetentionSteps steps) {
  Run run(connection, std::move(steps));
  const bool done =
      co_await with_purge_lock(connection, [&run](pg::Connection&) { return run.all(); }, step_deadline());
  if (!done) co_return std::nullopt;
  co_return run.totals();
}

Task<std::vector<PlanLine>> plan_retention(pg::Connection& connection, RetentionPeriods periods,
                                           SystemTime at, Deadline deadline) {
  std::vector<PlanLine> lines;
  pg::Params weeks(at, periods.regular, periods.superseded, periods.deletion);
  const auto old = co_await connection.query(sql::kPlanWeeks, std::move(weeks), deadline);
  for (const auto& row : old) {
    lines.push_back({"week", row.get<std::string>(0), row.get<std::int64_t>(1), row.get<std::int64_t>(2),
                     row.get<std::int64_t>(3)});
  }
  pg::Params events(at, periods.regular, periods.superseded, periods.deletion);
  const auto due = co_await connection.query(sql::kPlanRows, std::move(events), deadline);
  for (const auto& row : due) {
    lines.push_back({row.get<std::string>(0), row.get<std::string>(1), row.get<std::int64_t>(2),
                     row.get<std::int64_t>(3), 0});
  }
  pg::Params marks(at, periods.regular, periods.superseded, periods.deletion, periods.dedupe,
                   periods.tombstone);
  const auto old_marks = co_await connection.query(sql::kPlanMarks, std::move(marks), deadline);
  for (const auto& row : old_marks) {
    if (row.get<std::int64_t>(1) == 0) continue;
    lines.push_back({row.get<std::string>(0), "", row.get<std::int64_t>(1), row.get<std::int64_t>(2), 0});
  }
  co_return lines;
}

Retention::Retention(const Executor& executor, RetentionOptions options, const Clock& clock,
                     HealthBoard& health, metrics::Registry& registry)
    : PeriodicService(
          executor,
          {.name = "retention", .failed = "put off; the next round goes on", .every = options.every},
          registry),
      options_(std::move(options)),
      clock_(clock),
      health_(health),
      periods_(std::make_shared<const RetentionPeriods>(options_.periods)),
      weeks_(registry.counter("todoke_retention_partitions_dropped_total",
                              "Weeks of events that retention dropped.")),
      week_events_(registry.counter("todoke_retention_partition_rows_total", "Events that went with them.")),
      moved_(registry.counter("todoke_retention_rows_moved_total",
                              "Events that retention moved out of a week, because they are kept longer.")),
      rows_(
          registry.counters("todoke_retention_rows_deleted_total",
                            "Rows that retention deleted one by one: events with their links, event_dedupe, "
                            "deletion_tombstones.",
                            {"table"})),
      last_run_(registry.gauge("todoke_retention_last_run_seconds",
                               "Unix time at which retention was through the last time.")),
      held_(registry.gauge("todoke_retention_held_back",
                           "1: an open transaction keeps a week of old events from going.")) {
  options_.connect.application_name = "todoke retention";
}

Task<void> Retention::run() {
  co_await PeriodicService::run();
  health_.forget("retention");
  health_.forget("retention periods");
}

void Retention::set_periods(const RetentionPeriods& periods) {
  periods_.store(std::make_shared<const RetentionPeriods>(periods));
}

Task<void> Retention::round(RoundCause /*cause*/) {
  const auto now = clock_.now();
  RetentionSteps steps;
  steps.periods = *periods_.load();
  steps.at = now;
  steps.marks = !marks_at_ || now - *marks_at_ >= options_.marks_every || now < *marks_at_;
  steps.pause = [this] { return pause(options_.step_every); };
  steps.stop = [this] { return stop_asked(); };
  steps.progress = [this](const RetentionTotals& totals) { count(totals); };
  counted_ = {};
  const auto connection = co_await pg::Connection::connect(options_.connect, step_deadline());
  tell_periods(
      co_await period_problem(*connection, steps.periods, std::nullopt, std::nullopt, step_deadline()));
  const bool reads_marks = steps.marks;
  const auto totals = co_await run_retention(*connection, std::move(steps));
  if (!totals) co_return;
  count(*totals);
  tell(*totals);
  if (stop_asked()) co_return;
  if (reads_marks) marks_at_ = now;
  last_run_.set(std::chrono::duration<double>(clock_.now().time_since_epoch()).count());
}

// Nothing comes back all the same: a dedupe row is kept for the longest period of regular events at least.
void Retention::tell_periods(const std::optional<std::string>& problem) {
  if (!problem) {
    health_.forget("retention periods");
    return;
  }
  health_.report("retention periods", false, {HealthState::degraded, *problem});
}

void Retention::count(const RetentionTotals& now) {
  const auto add = [](metrics::Counter& counter, std::int64_t from, std::int64_t to) {
    counter.add(static_cast<std::uint64_t>(to - from));
  };
  add(weeks_, counted_.weeks, now.weeks);
  add(week_events_, counted_.week_events, now.week_events);
  add(moved_, counted_.moved, now.moved);
  add(rows_.with({"events"}), counted_.events, now.events);
  add(rows_.with({"event_dedupe"}), counted_.dedupe_rows, now.dedupe_rows);
  add(rows_.with({"deletion_tombstones"}), counted_.tombstones, now.tombstones);
  counted_ = now;
}

void Retention::tell(const RetentionTotals& totals) {
  held_.set(totals.held ? 1 : 0);
  if (!totals.held) {
    health_.forget("retention");
    return;
  }
  health_.report(
      "retention", false,
      {HealthState::degraded,
       fmt::format(
           "a transaction that has read events stays open (pg_stat_activity): the week of {} can't go",
           day_of(*totals.held))});
  log::warning("retention", "an open transaction keeps a week of events from going; the next round goes on",
               {{"week", day_of(*totals.held)}});
}

}  // namespace todoke::relay
