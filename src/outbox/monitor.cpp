#include "outbox/monitor.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "outbox/outbox_sql.hpp"

namespace todoke::outbox {
namespace {

constexpr std::chrono::seconds kLookEvery(1);
constexpr std::chrono::seconds kLookMax(5);
constexpr std::int32_t kConsumersMax = 1'000;

constexpr std::array<std::string_view, kPressureMax> kMeaning{"normal", "no backfill",
                                                              "low-priority topics are held"};

std::string_view meaning_of(const Pressure& pressure) {
  const auto level = pressure.level();
  if (level < kPressureMax) return kMeaning.at(static_cast<std::size_t>(level));
  if (pressure.of(PressureInput::capacity) < kPressureMax) return "acceptance is tightened";
  if (pressure.of(PressureInput::backlog) < kPressureMax) return "the oldest events go";
  return "acceptance is tightened, and the oldest events go";
}

}  // namespace

LogMonitor::LogMonitor(const Executor& executor, MonitorOptions options, Pressure& pressure, pg::Pool& pool,
                       HealthBoard& health, metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "log monitor", .failed = "the backlogs were not read", .every = kLookEvery},
                      registry),
      options_(std::move(options)),
      pressure_(pressure),
      pool_(pool),
      health_(health),
      backlog_(registry.gauges("todoke_outbox_backlog", "Rows of the log that a consumer has not taken yet.",
                               {"consumer"})),
      lag_(registry.gauges("todoke_outbox_lag_seconds",
                           "Age of the first row that a consumer has not taken yet.", {"consumer"})),
      level_(registry.gauge("todoke_pressure",
                            "0 normal, 1 no backfill, 2 low-priority topics held, 3 tightened or purging.")) {
  auto& causes = registry.gauges("todoke_pressure_cause", "The step that each input asks for.", {"cause"});
  backlog_level_ = &causes.with({"backlog"});
  capacity_level_ = &causes.with({"capacity"});
  for (const auto& needed : options_.needed) watched_.push_back({needed});
}

Task<void> LogMonitor::start() {
  co_await round(RoundCause::time);
}

Task<void> LogMonitor::run() {
  co_await PeriodicService::run();
  health_.forget("pressure");
  health_.forget("consumers");
  for (const auto& watched : watched_) health_.forget(watched.consumer.key);
}

Task<void> LogMonitor::round(RoundCause /*cause*/) {
  const auto deadline = Deadline::after(kLookMax);
  const auto lease = co_await pool_.acquire(deadline);
  const auto rows = co_await lease->query(sql::kBacklogs, {kConsumersMax}, deadline);
  std::int64_t worst = 0;
  std::string slowest;
  std::map<std::string, Seen> seen;
  for (const auto& row : rows) {
    const auto name = row.get<std::string>("consumer");
    seen[name] = {row.get<bool>("held"), row.get<bool>("paused"), row.get<std::string>("state")};
    const auto behind = row.get<std::int64_t>("rows");
    backlog_.with({name}).set(static_cast<double>(behind));
    lag_.with({name}).set(row.get<double>("seconds"));
    if (!row.get<bool>("mandatory") || behind <= worst) continue;
    worst = behind;
    slowest = name;
  }
  for (const auto& name : std::exchange(known_, {})) {
    if (seen.contains(name)) continue;
    backlog_.with({name}).set(0);
    lag_.with({name}).set(0);
  }
  for (const auto& [name, consumer] : seen) known_.push_back(name);
  report(worst, slowest);
  report_lost(seen);
  for (auto& watched : watched_) watch(watched, seen[watched.consumer.name]);
}

void LogMonitor::report_lost(const std::map<std::string, Seen>& seen) {
  std::string lost;
  for (const auto& [name, consumer] : seen) {
    if (consumer.state == "needs_rebuild") lost += (lost.empty() ? "" : ", ") + name;
  }
  if (!lost.empty()) lost = "rows that were not read yet have left the log: must start again: " + lost;
  health_.report("consumers", false, {lost.empty() ? HealthState::up : HealthState::degraded, lost});
}

void LogMonitor::watch(Watched& watched, const Seen& seen) {
  const auto& [name, role, key] = watched.consumer;
  watched.looks_without = seen.held ? 0 : watched.looks_without + 1;
  std::string problem;
  if (watched.looks_without > options_.looks_without_max) {
    problem = fmt::format("{} is on, but no node runs {} (role {})", key, name, role);
  } else if (seen.paused) {
    problem = fmt::format("{} is on, but {} is paused (`todoke consumers resume {}`)", key, name, name);
  } else if (seen.state == "needs_rebuild") {
    problem = fmt::format("{} is on, but {} has lost rows (`todoke consumers rebuild {}`)", key, name, name);
  }
  health_.report(key, false, {problem.empty() ? HealthState::up : HealthState::degraded, problem});
  const bool was_told = std::exchange(watched.is_told, !problem.empty());
  if (was_told == watched.is_told) return;
  if (watched.is_told) {
    log::warning("log monitor", problem, {{"consumer", name}});
  } else {
    log::info("log monitor", "a consumer that this node needs runs again", {{"consumer", name}});
  }
}

void LogMonitor::report(std::int64_t backlog, const std::string& slowest) {
  const auto by_backlog = next_pressure(pressure_.of(PressureInput::backlog), backlog, options_.thresholds);
  const auto by_capacity = pressure_.of(PressureInput::capacity);
  pressure_.set(PressureInput::backlog, by_backlog);
  const auto now = pressure_.level();
  level_.set(now);
  backlog_level_->set(by_backlog);
  capacity_level_->set(by_capacity);
  std::string why;
  if (by_backlog > 0) why += fmt::format(": {} is {} rows behind", slowest, backlog);
  if (by_capacity > 0)
    why += fmt::format("{} the line `capacity in use` says how much", why.empty() ? ":" : ", and");
  const auto meaning = meaning_of(pressure_);
  health_.report(
      "pressure", false,
      {now == 0 ? HealthState::up : HealthState::degraded, fmt::format("{}, {}{}", now, meaning, why)});
  const auto before = std::exchange(told_, now);
  if (now == before) return;
  const auto text = fmt::format("pressure is {} ({})", now, meaning);
  log::write(
      now > before ? log::Level::warning : log::Level::info, "log monitor", text,
      {{"consumer", slowest}, {"rows", backlog}, {"by_backlog", by_backlog}, {"by_capacity", by_capacity}});
}

}  // namespace todoke::outbox
