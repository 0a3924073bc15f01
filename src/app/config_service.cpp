#include "app/config_service.hpp"

#include <utility>

#include <fmt/format.h>

#include "admin/service_configs.hpp"
#include "base/log.hpp"
#include "net/config.hpp"
#include "pg/channels.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kPollEvery(30);
constexpr std::chrono::seconds kLookMax(10);

// Live keys are never secrets.
void tell_changed(const Config& before, const Config& now) {
  for (const auto* spec : before.changed_in(now)) {
    log::info("configuration", "setting changed",
              {{"key", spec->name},
               {"before", before.shown(spec->name)},
               {"after", now.shown(spec->name)},
               {"source", now.setting(spec->name).source}});
  }
}

void warn_of_lifted_rates(const Config& config) {
  if (config.get(net::keys::kRates) != "off") return;
  log::warning("configuration", "limits.rates is off: every rate limit is lifted",
               {{"source", config.setting(net::keys::kRates.spec.name).source}});
}

}  // namespace

ConfigService::ConfigService(const Executor& executor, LiveConfig& live, pg::Pool& pool,
                             pg::Listener& listener, HealthBoard& health, metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "live configuration",
                       .failed = "the live configuration was not read; the last one holds",
                       .every = kPollEvery},
                      registry),
      live_(live),
      pool_(pool),
      listener_(listener),
      health_(health),
      version_(registry.gauges("todoke_config_version", "Version of the live configuration that was read.",
                               {"service"})),
      refused_(
          registry.gauge("todoke_config_refused",
                         "Values of the live configuration that are refused; the last good ones hold.")) {
  live_.on_change([last = live_.config()](const Config& now) mutable {
    tell_changed(last, now);
    if (last.get(net::keys::kRates) != now.get(net::keys::kRates)) warn_of_lifted_rates(now);
    last = now;
  });
}

Task<void> ConfigService::start() {
  // Before the first look: what changes meanwhile is seen by the next one.
  subscription_ = listener_.subscribe(pg::channels::kConfig, [this](const pg::Wake&) { wake_up(); });
  const auto deadline = Deadline::after(kLookMax);
  auto lease = co_await pool_.acquire(deadline);
  const auto seeded = co_await admin::seed_service_configs(*lease, live_.config(), deadline);
  if (!seeded.empty()) {
    log::info("configuration", "live keys were seeded from the file",
              {{"services", fmt::format("{}", fmt::join(seeded, ", "))}});
  }
  const auto rates = live_.config().get(net::keys::kRates);
  live_.set_rows(seen_ = co_await admin::read_service_configs(*lease, deadline));
  if (rates == live_.config().get(net::keys::kRates)) warn_of_lifted_rates(live_.config());
}

Task<void> ConfigService::run() {
  report();
  co_await PeriodicService::run();
  subscription_ = {};
  health_.forget("configuration");
}

Task<void> ConfigService::round(RoundCause /*cause*/) {
  const auto deadline = Deadline::after(kLookMax);
  auto lease = co_await pool_.acquire(deadline);
  auto rows = co_await admin::read_service_configs(*lease, deadline);
  if (rows == seen_) co_return;
  seen_ = std::move(rows);
  live_.set_rows(seen_);
  report();
}

void ConfigService::report() {
  for (const auto& row : seen_) version_.with({row.service}).set(static_cast<double>(row.version));
  const auto& problems = live_.problems();
  refused_.set(static_cast<double>(problems.size()));
  const auto first = problems.empty() ? std::string() : problems.front();
  const auto text = problems.size() < 2 ? first : fmt::format("{} (and {} more)", first, problems.size() - 1);
  health_.report("configuration", false, {problems.empty() ? HealthState::up : HealthState::degraded, text});
  if (problems != std::exchange(told_problems_, problems)) {
    for (const auto& problem : problems) {
      log::error("configuration", "a value of the database is refused; the last good one holds",
                 {{"error", problem}});
    }
  }
  tell_hidden();
}

void ConfigService::tell_hidden() {
  auto hidden = live_.hidden();
  for (const auto& removed : live_.config().removed_settings()) hidden.push_back(removed.text);
  if (hidden == told_hidden_) return;
  for (const auto& line : hidden) {
    log::warning("configuration",
                 "a value has no effect (`todoke config set` and `unset` change the database)",
                 {{"value", line}});
  }
  told_hidden_ = std::move(hidden);
}

}  // namespace todoke::app
