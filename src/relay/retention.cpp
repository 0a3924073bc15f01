#include "relay/retention.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "base/timestamp.hpp"
#include "pg/error.hpp"
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

// Of period_problems, and of those that are named.
constexpr std::int32_t kProblemsMax = 1'000;
constexpr std::size_t kProblemsNamed = 10;

// As Postgres keeps it.
SystemTime in_microseconds(SystemTime time) {
  return std::chrono::floor<std::chrono::microseconds>(time);
}

// Where a walk is (cn_relay.purge_walks); each uses of it what it needs.
struct WalkPlace {
  SystemTime time{};
  std::string text;
  std::int64_t number = 0;
  std::optional<SystemTime> finished_at;
  [[nodiscard]] bool is_at_start() const { return time == SystemTime{} && text.empty() && number == 0; }
};

// One turn of everything. Each function leaves off when a stop is asked for.
class Round {
 public:
  Round(pg::Connection& connection, RetentionSteps steps, RetentionTotals before)
      : connection_(connection), steps_(std::move(steps)) {
    result_.totals = before;
    steps_.at = in_microseconds(steps_.at);
    began_ = in_microseconds(steps_.began.value_or(steps_.at));
  }

  Task<RetentionRound> run() {
    const auto apart = co_await clock_difference(connection_, steps_.at, step_deadline());
    if (!clocks_agree(apart)) {
      result_.clocks_apart = apart;
      co_return result_;
    }
    co_await turn([this] { return weeks(); });
    co_await walk("short topics", began_, [this](WalkPlace& place) { return short_topic(place); });
    const WalkPlace start;
    const auto any_short = co_await next_short_topic(start);
    if (!any_short.empty()) {
      co_await walk("lost regular", began_,
                    [this](WalkPlace& place) { return page(sql::kPageOfLostRegular, 0, place); });
    }
    const auto shortest = co_await connection_.query(
        sql::kShortestPeriods, {steps_.periods.regular, steps_.periods.superseded, steps_.periods.deletion},
        step_deadline());
    shortest_kept_ = shortest.one().get<std::int32_t>(0);
    shortest_lost_ = shortest.one().get<std::int32_t>(1);
    co_await walk("kept", began_,
                  [this](WalkPlace& place) { return page(sql::kPageOfKept, shortest_kept_, place); });
    co_await walk("lost versions", began_,
                  [this](WalkPlace& place) { return page(sql::kPageOfLostVersions, shortest_lost_, place); });
    const auto marks_since = began_ - steps_.marks_every;
    co_await walk("dedupe rows", marks_since, [this](WalkPlace& place) {
      return marks(sql::kPurgeDedupe, 0, steps_.periods.dedupe, result_.totals.dedupe_rows, place);
    });
    co_await walk("tombstones", marks_since, [this](WalkPlace& place) {
      return marks(sql::kPurgeTombstones, 1, steps_.periods.tombstone, result_.totals.tombstones, place);
    });
    co_return result_;
  }

 private:
  // True: the walk is at its end.
  using Step = std::function<Task<bool>(WalkPlace&)>;

  // With the purge lock. A step that ran into somebody's lock ends the turn, and is left to the next run.
  Task<void> turn(std::function<Task<void>()> work) {
    if (result_.is_busy || steps_.stop()) co_return;
    steps_left_ = steps_.steps_of_turn;
    const auto until = Deadline::after(steps_.lock_wait + kStepMax);
    const bool had_lock = co_await with_purge_lock(
        connection_, steps_.lock_wait, [&](pg::Connection&) { return unless_locked(work); }, until);
    if (!had_lock) result_.is_busy = true;
  }

  Task<void> unless_locked(const std::function<Task<void>()>& work) {
    const auto done = co_await attempt(work());
    if (done) co_return;
    if (!pg::waited_for_lock(done.error())) std::rethrow_exception(done.error());
    ++result_.totals.lock_timeouts;
    steps_.progress(result_.totals);
  }

  bool takes_step() {
    if (steps_.stop()) return false;
    if (steps_left_ > 0) {
      --steps_left_;
      return true;
    }
    result_.is_through = false;
    return false;
  }

  Task<void> weeks() {
    result_.totals.held.reset();
    co_await drop();
    const auto old = co_await old_weeks(connection_, steps_.at, steps_.periods.regular, step_deadline());
    for (const auto& week : old) {
      const bool is_empty = co_await empty_week(week.begins);
      if (!is_empty) co_return;
      const auto events = co_await detach_week(connection_, week.begins, step_deadline());
      if (!events) {
        // Later weeks are held as well: what holds one has read them all.
        result_.totals.held = week.begins;
        co_return;
      }
      ++result_.totals.weeks;
      result_.totals.week_events += *events;
      log::info("retention", "a week of events was dropped",
                {{"week", day_of(week.begins)}, {"events", *events}});
      co_await drop();
      co_await breathe();
    }
  }

  // Also what a process has left that was killed.
  Task<void> drop() {
    const auto bytes = co_await drop_detached(connection_, step_deadline());
    if (!bytes) ++result_.totals.lock_timeouts;
    result_.totals.bytes += bytes.value_or(0);
  }

  // True: nothing of it has to stay any more.
  Task<bool> empty_week(SystemTime week) {
    while (takes_step()) {
      const auto moved =
          co_await keep_some_of_week(connection_, week, steps_.at, steps_.periods.regular, step_deadline());
      if (moved == 0) co_return true;
      result_.totals.moved += moved;
      co_await breathe();
    }
    co_return false;
  }

  // A turn of one walk, from where it is. Nothing to do: it was at its end since `not_before`.
  Task<void> walk(std::string_view name, SystemTime not_before, Step step) {
    co_await turn([&] { return walk_on(name, not_before, step); });
  }

  Task<void> walk_on(std::string_view name, SystemTime not_before, const Step& step) {
    pg::Params named{std::string(name)};
    const auto rows = co_await connection_.query(sql::kWalkPlace, std::move(named), step_deadline());
    WalkPlace place;
    if (!rows.empty()) {
      const auto row = rows.one();
      place = {row.get<SystemTime>(0), row.get<std::string>(1), row.get<std::int64_t>(2),
               row.get<std::optional<SystemTime>>(3)};
    }
    if (place.is_at_start() && place.finished_at >= not_before && place.finished_at <= steps_.at) co_return;
    bool is_last = false;
    const auto walked = co_await attempt(walk_some(place, step, is_last));
    if (is_last) place = {};
    pg::Params params(std::string(name), place.time, place.text, place.number,
                      is_last ? std::optional(steps_.at) : std::nullopt);
    co_await connection_.query(sql::kPutWalk, std::move(params), step_deadline());
    if (!walked) std::rethrow_exception(walked.error());
  }

  Task<void> walk_some(WalkPlace& place, const Step& step, bool& is_last) {
    while (!is_last && takes_step()) is_last = co_await step(place);
  }

  // `number`: how far into the topic `text`; below 0: it is done.
  Task<bool> short_topic(WalkPlace& place) {
    const auto topics = co_await next_short_topic(place);
    if (topics.empty()) co_return true;
    const auto topic = topics.one().get<std::string>(0);
    if (topic != place.text || place.number < 0) place.number = 0;
    place.text = topic;
    pg::Params params(topic, place.number, steps_.at, kWalkRows, steps_.periods.regular,
                      topics.one().get<std::int32_t>(1));
    const auto page = co_await connection_.query(sql::kPageOfTopic, std::move(params), step_deadline());
    const auto row = page.one();
    const auto links = row.get<std::int64_t>(0);
    if (links > 0) co_await purge(due_events(row, 2));
    place.number = links < kWalkRows ? -1 : row.get<std::int64_t>(1);
    co_return false;
  }

  Task<pg::Result> next_short_topic(const WalkPlace& place) {
    pg::Params from(steps_.periods.regular, place.text, place.number >= 0);
    auto topics = co_await connection_.query(sql::kNextShortTopic, std::move(from), step_deadline());
    co_return topics;
  }

  // In the order of a time and an id; the statement says which.
  Task<bool> page(pg::Statement statement, std::int32_t shortest_days, WalkPlace& place) {
    pg::Params params(place.time, place.text, steps_.at, kWalkRows, steps_.periods.regular,
                      steps_.periods.superseded, steps_.periods.deletion, shortest_days);
    const auto page = co_await connection_.query(statement, std::move(params), step_deadline());
    const auto row = page.one();
    const auto rows = row.get<std::int64_t>(0);
    if (rows > 0) co_await purge(due_events(row, 3));
    if (rows < kWalkRows) co_return true;
    place.time = row.get<SystemTime>(1);
    place.text = row.get<std::string>(2);
    co_return false;
  }

  Task<void> purge(DueEvents due) {
    const auto gone = co_await purge_events(connection_, std::move(due), step_deadline());
    result_.totals.events += gone.events;
    result_.totals.bytes += gone.bytes;
    co_await breathe();
  }

  // Block by block; `column` of the statement `blocks` says how many there are.
  Task<bool> marks(pg::Statement statement, std::size_t column, std::int32_t days, std::int64_t& gone,
                   WalkPlace& place) {
    pg::Params none;
    const auto rows = co_await connection_.query(sql::kBlocks, std::move(none), step_deadline());
    const auto blocks = rows.one().get<std::int64_t>(column);
    if (place.number >= blocks) co_return true;
    pg::Params params(place.number, place.number + kWalkBlocks, steps_.at, days, steps_.periods.regular);
    const auto deleted = co_await connection_.query(statement, std::move(params), step_deadline());
    gone += static_cast<std::int64_t>(deleted.affected());
    place.number += kWalkBlocks;
    co_await breathe();
    co_return place.number >= blocks;
  }

  Task<void> breathe() {
    steps_.progress(result_.totals);
    co_await steps_.pause();
  }

  pg::Connection& connection_;
  RetentionSteps steps_;
  RetentionRound result_;
  SystemTime began_;
  int steps_left_ = 0;  // of this turn
  std::int32_t shortest_kept_ = 0;
  std::int32_t shortest_lost_ = 0;
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

Task<std::vector<std::string>> period_problems(pg::Connection& connection, RetentionPeriods periods,
                                               std::optional<std::string> topic,
                                               std::optional<std::string> policy, Deadline deadline) {
  pg::Params params(periods.regular, periods.tombstone, periods.dedupe, topic, policy, kProblemsMax);
  const auto rows = co_await connection.query(sql::kPeriodProblems, std::move(params), deadline);
  std::vector<std::string> problems;
  for (const auto& row : rows) {
    problems.push_back(fmt::format("{} ({}) must be at least {} ({})", row.get<std::string>(0),
                                   row.get<std::int32_t>(1), row.get<std::string>(2),
                                   row.get<std::int32_t>(3)));
  }
  co_return problems;
}

std::string period_text(const std::vector<std::string>& problems) {
  const auto named = std::min(problems.size(), kProblemsNamed);
  auto text = fmt::format(
      "{}", fmt::join(problems.begin(), problems.begin() + static_cast<std::ptrdiff_t>(named), "; "));
  if (named < problems.size()) text += fmt::format("; and {} more of that kind", problems.size() - named);
  return text + ": what was purged could come back as news";
}

std::vector<std::string> new_problems(const std::vector<std::string>& before,
                                      std::vector<std::string> after) {
  std::erase_if(after, [&](const auto& problem) {
    return std::find(before.begin(), before.end(), problem) != before.end();
  });
  return after;
}

Task<RetentionRound> retention_round(pg::Connection& connection, RetentionSteps steps,
                                     RetentionTotals before) {
  Round round(connection, std::move(steps), before);
  auto result = co_await round.run();
  co_return result;
}

Task<std::optional<RetentionTotals>> run_retention(pg::Connection& connection, RetentionSteps steps) {
  RetentionRound round;
  do {
    round = co_await retention_round(connection, steps, round.totals);
    if (round.clocks_apart) throw UserError(clocks_text(*round.clocks_apart));
    if (round.is_busy) co_return std::nullopt;
  } while (!round.is_through && !steps.stop());
  co_return round.totals;
}

std::string clocks_text(std::chrono::seconds apart) {
  return fmt::format("the clock of this machine is {} s {} the database's: nothing is purged by age",
                     std::abs(apart.count()), apart.count() < 0 ? "behind" : "ahead of");
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
                           "1: an open transaction keeps a week of old events from going.")),
      lock_timeouts_(registry.counter(
          "todoke_retention_lock_timeouts_total",
          "Steps of retention that ran into somebody's lock and were put off to the next run.")),
      clocks_apart_(
          registry.gauge("todoke_retention_clocks_apart",
                         "1: the clocks of node and database differ by minutes; nothing is purged by "
                         "age.")) {
  options_.connect.application_name = "todoke retention";
}

Task<void> Retention::run() {
  co_await PeriodicService::run();
  health_.forget("retention");
  health_.forget("retention clock");
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
  steps.began = began_.value_or(now);
  steps.marks_every = options_.marks_every;
  steps.pause = [this] { return pause(options_.step_every); };
  steps.stop = [this] { return stop_asked(); };
  steps.progress = [this](const RetentionTotals& totals) { count(totals); };
  counted_ = {};
  const auto connection = co_await pg::Connection::connect(options_.connect, step_deadline());
  const auto problems =
      co_await period_problems(*connection, steps.periods, std::nullopt, std::nullopt, step_deadline());
  tell_periods(problems);
  const auto began = steps.began;
  const auto done = co_await retention_round(*connection, std::move(steps));
  tell_clocks(done.clocks_apart);
  if (done.clocks_apart) co_return;
  count(done.totals);
  if (done.is_busy || stop_asked()) co_return;
  tell_held(done.totals);
  began_ = done.is_through ? std::nullopt : std::optional(began);
  if (done.is_through) {
    last_run_.set(std::chrono::duration<double>(clock_.now().time_since_epoch()).count());
  } else {
    wake_up();
  }
}

// Nothing comes back all the same: a dedupe row is kept for the longest period of regular events at least.
void Retention::tell_periods(const std::vector<std::string>& problems) {
  if (problems.empty()) {
    health_.forget("retention periods");
    return;
  }
  health_.report("retention periods", false, {HealthState::degraded, period_text(problems)});
}

void Retention::tell_clocks(std::optional<std::chrono::seconds> apart) {
  clocks_apart_.set(apart ? 1 : 0);
  if (!apart) {
    health_.forget("retention clock");
    clocks_told_ = false;
    return;
  }
  health_.report("retention clock", false, {HealthState::degraded, clocks_text(*apart)});
  if (!std::exchange(clocks_told_, true))
    log::error("retention", "the clocks of node and database differ: nothing is purged by age",
               {{"ahead_s", apart->count()}});
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
  add(lock_timeouts_, counted_.lock_timeouts, now.lock_timeouts);
  counted_ = now;
}

void Retention::tell_held(const RetentionTotals& totals) {
  held_.set(totals.held ? 1 : 0);
  if (!totals.held) {
    health_.forget("retention");
    held_told_.reset();
    return;
  }
  health_.report(
      "retention", false,
      {HealthState::degraded,
       fmt::format(
           "a transaction that has read events stays open (pg_stat_activity): the week of {} can't go",
           day_of(*totals.held))});
  if (std::exchange(held_told_, totals.held) == totals.held) return;
  log::warning("retention", "an open transaction keeps a week of events from going; a later round goes on",
               {{"week", day_of(*totals.held)}});
}

}  // namespace todoke::relay
