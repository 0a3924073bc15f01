// What retention would drop, and dropping it now.
#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/retention_periods.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "relay/retention.hpp"

namespace todoke::app {
namespace {

// It reads whole tables.
constexpr std::chrono::minutes kPlanLimit(30);
// As a node does: it leaves the database to others in between.
constexpr std::chrono::milliseconds kStepPause(20);
constexpr std::chrono::seconds kProgressEvery(1);
// A turn of the node's own retention, or of its capacity, is over by then.
constexpr std::chrono::seconds kLockWait(30);

std::string plan_json(const std::vector<relay::PlanLine>& lines, const relay::RetentionPeriods& periods,
                      SystemTime at) {
  JsonWriter json;
  json.begin_object().member("at", format_timestamp(at, 0));
  json.key("periods").begin_object();
  json.member("regular_days", periods.regular).member("superseded_days", periods.superseded);
  json.member("deletion_days", periods.deletion).member("tombstone_days", periods.tombstone);
  json.member("dedupe_days", periods.dedupe).end_object();
  json.key("drops").begin_array();
  for (const auto& line : lines) {
    json.begin_object().member("what", line.what).member("where", line.where);
    json.member("rows", line.rows).member("bytes", line.bytes).member("moved", line.moved).end_object();
  }
  json.end_array().end_object();
  return std::move(json).text() + "\n";
}

std::string plan_table(const std::vector<relay::PlanLine>& lines, const relay::RetentionPeriods& periods,
                       SystemTime at) {
  auto text =
      fmt::format("at {}: regular {} days, superseded {}, deletion requests {}, tombstones {}, dedupe {}\n",
                  format_timestamp(at, 0), periods.regular, periods.superseded, periods.deletion,
                  periods.tombstone, periods.dedupe);
  if (lines.empty()) return text + "nothing would go\n";
  text += fmt::format("{:<18} {:>12} {:>14} {:>12}  {}\n", "what", "rows", "bytes", "moved", "where");
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
  for (const auto& line : lines) {
    rows += line.rows;
    bytes += line.bytes;
    text += fmt::format("{:<18} {:>12} {:>14} {:>12}  {}\n", line.what, line.rows, line.bytes, line.moved,
                        line.where);
  }
  return text + fmt::format("{:<18} {:>12} {:>14}\n", "in all", rows, bytes);
}

Task<void> print_plan(pg::Connection& connection, const Config& config, SystemTime at, bool json) {
  const auto periods = co_await periods_in_force(connection, config);
  const auto lines = co_await relay::plan_retention(connection, periods, at, Deadline::after(kPlanLimit));
  print(json ? plan_json(lines, periods, at) : plan_table(lines, periods, at));
}

std::string totals_text(const relay::RetentionTotals& totals) {
  return fmt::format(
      "{} weeks with {} events, {} events moved, {} events, {} dedupe rows, {} tombstones; {} bytes",
      totals.weeks, totals.week_events, totals.moved, totals.events, totals.dedupe_rows, totals.tombstones,
      totals.bytes);
}

Task<void> run_now(pg::Connection& connection, const Config& config, int& code) {
  relay::RetentionSteps steps;
  steps.periods = co_await periods_in_force(connection, config);
  steps.at = SystemClock().now();
  steps.lock_wait = kLockWait;
  steps.pause = [] { return sleep_for(kStepPause); };
  const bool on_terminal = isatty(STDERR_FILENO) == 1;
  steps.progress = [on_terminal, next = SteadyTime()](const relay::RetentionTotals& totals) mutable {
    const auto now = std::chrono::steady_clock::now();
    if (now < next ||
        (totals.moved == 0 && totals.events == 0 && totals.weeks == 0 && totals.dedupe_rows == 0))
      return;
    next = now + kProgressEvery;
    std::fputs(
        fmt::format("{}{}{}", on_terminal ? "\r" : "", totals_text(totals), on_terminal ? "\033[K" : "\n")
            .c_str(),
        stderr);
  };
  const auto problems = co_await relay::period_problems(connection, steps.periods, std::nullopt, std::nullopt,
                                                        answer_deadline());
  if (!problems.empty()) throw UserError(relay::period_text(problems));
  const auto totals = co_await relay::run_retention(connection, std::move(steps));
  if (on_terminal) std::fputs("\n", stderr);
  if (!totals) throw UserError("a node purges just now; it goes on by itself");
  print("gone: " + totals_text(*totals) + "\n");
  if (totals->lock_timeouts > 0)
    note(fmt::format("todoke: {} steps ran into somebody's lock; the next run does them",
                     totals->lock_timeouts));
  if (!totals->held) co_return;
  code = 1;
  note(fmt::format(
      "todoke: a transaction that has read events stays open (pg_stat_activity): the week of {} can't go",
      format_timestamp(*totals->held, 0)));
}

int run_retention_command(const Arguments& arguments) {
  const auto& words = arguments.words;
  if (words.size() != 1 || (words[0] != "plan" && words[0] != "run"))
    throw UsageError("retention: say plan or run");
  const auto config = command_config(arguments);
  if (words[0] == "plan") {
    const auto at = time_option(arguments, "at").value_or(SystemClock().now());
    with_running_database(config, [&](pg::Connection& connection) {
      return print_plan(connection, config, at, arguments.has("json"));
    });
    return 0;
  }
  int code = 0;
  with_running_database(config,
                        [&](pg::Connection& connection) { return run_now(connection, config, code); });
  return code;
}

}  // namespace

Command retention_command() {
  return {
      .name = "retention",
      .summary = "show what retention would drop, or drop it now",
      .synopsis = "plan [--at TIME] [--json] | run",
      .details =
          "plan changes nothing: it counts what a run at that time would drop, in rows and bytes, for each "
          "weekly "
          "partition, for what goes by itself, and for what would be moved because a topic keeps it longer. "
          "It "
          "reads whole tables; with --at in the future it tells of what is stored now.\n\n"
          "run does it at once, with the periods of the running node and beside it, and says on stderr how "
          "far "
          "it is. A running relay does the same every ten minutes, and the two take turns. It refuses where "
          "the "
          "clocks of this machine and of the database are minutes apart. The exit code is 1 where an open "
          "transaction "
          "keeps a week from going; the next run goes on.\n\n"
          "docs/retention.md says what is kept for how long.",
      .options = {{"at", "TIME", "as if it was that time (2026-01-31T12:00:00Z)", {"plan"}},
                  {"json", "", "for programs", {"plan"}}},
      .words_max = 1,
      .run = run_retention_command,
  };
}

}  // namespace todoke::app
