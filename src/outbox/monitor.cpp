#include "outbox/monitor.hpp"

#include <fmt/format.h>

#include "base/log.hpp"
#include "outbox/outbox_sql.hpp"

namespace todoke::outbox {
namespace {

constexpr std::chrono::seconds kLookEvery(1);
constexpr std::chrono::seconds kLookMax(5);
constexpr std::int32_t kConsumersMax = 1'000;

constexpr std::array<std::string_view, kPressureMax + 1> kMeaning{
    "normal", "no backfill", "low-priority topics are held", "acceptance is tightened"};

}  // namespace

LogMonitor::LogMonitor(const Executor& executor, PressureThresholds thresholds, Pressure& pressure,
                       pg::Pool& pool, HealthBoard& health, metrics::Registry& registry)
    : thresholds_(thresholds),
      pressure_(pressure),
      pool_(pool),
      health_(health),
      backlog_(registry.gauges("todoke_outbox_backlog", "Rows of the log that a consumer has not taken yet.",
                               {"consumer"})),
      lag_(registry.gauges("todoke_outbox_lag_seconds",
                           "Age of the first row that a consumer has not taken yet.", {"consumer"})),
      level_(registry.gauge("todoke_pressure",
                            "0 normal, 1 no backfill, 2 low-priority topics held, 3 tightened.")),
      stop_asked_(executor) {}

Expected<void> LogMonitor::validate() const {
  const auto& rows = thresholds_.backlog;
  if (rows[0] < rows[1] && rows[1] < rows[2]) return {};
  return refuse("log.pressure_rows_1, _2 and _3 must grow");
}

Task<void> LogMonitor::start() {
  co_await look();
}

void LogMonitor::stop() {
  stop_asked_.set();
}

Task<void> LogMonitor::run() {
  for (;;) {
    const bool stopped = co_await stop_asked_.wait_for(kLookEvery);
    if (stopped) break;
    std::exception_ptr failure;
    try {
      co_await look();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) log::warning("log monitor", "the backlogs were not read", {{"error", describe(failure)}});
  }
  health_.forget("pressure");
}

Task<void> LogMonitor::look() {
  const auto deadline = Deadline::after(kLookMax);
  const auto lease = co_await pool_.acquire(deadline);
  const auto rows = co_await lease->query(sql::kBacklogs, {kConsumersMax}, deadline);
  std::int64_t worst = 0;
  std::string slowest;
  for (const auto& row : rows) {
    const auto name = row.get<std::string>("consumer");
    const auto behind = row.get<std::int64_t>("rows");
    backlog_.with({name}).set(static_cast<double>(behind));
    lag_.with({name}).set(row.get<double>("seconds"));
    if (!row.get<bool>("mandatory") || behind <= worst) continue;
    worst = behind;
    slowest = name;
  }
  report(worst, slowest);
}

void LogMonitor::report(std::int64_t backlog, const std::string& slowest) {
  const auto before = pressure_.level();
  const auto now = next_pressure(before, backlog, thresholds_);
  pressure_.set(now);
  level_.set(now);
  const auto meaning = kMeaning.at(static_cast<std::size_t>(now));
  const auto why = now == 0 ? std::string() : fmt::format(": {} is {} rows behind", slowest, backlog);
  health_.report(
      "pressure", false,
      {now == 0 ? HealthState::up : HealthState::degraded, fmt::format("{}, {}{}", now, meaning, why)});
  if (now == before) return;
  const auto text = fmt::format("pressure is {} ({})", now, meaning);
  if (now > before) {
    log::warning("log monitor", text, {{"consumer", slowest}, {"rows", backlog}});
  } else {
    log::info("log monitor", text, {{"rows", backlog}});
  }
}

}  // namespace todoke::outbox
