// Watches how far the consumers are behind: a metric for each, the node's pressure, a health line and a log
// line when it changes.
#pragma once

#include "base/service.hpp"
#include "outbox/pressure.hpp"
#include "pg/pool.hpp"

namespace todoke::outbox {

class LogMonitor final : public Service {
 public:
  LogMonitor(const Executor& executor, PressureThresholds thresholds, Pressure& pressure, pg::Pool& pool,
             HealthBoard& health, metrics::Registry& registry);

  [[nodiscard]] std::string_view name() const override { return "log monitor"; }
  [[nodiscard]] bool essential() const override { return false; }
  [[nodiscard]] Expected<void> validate() const override;
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

 private:
  Task<void> look();
  void report(std::int64_t backlog, const std::string& slowest);

  PressureThresholds thresholds_;
  Pressure& pressure_;
  pg::Pool& pool_;
  HealthBoard& health_;
  metrics::Family<metrics::Gauge>& backlog_;  // todoke_outbox_backlog{consumer}
  metrics::Family<metrics::Gauge>& lag_;      // todoke_outbox_lag_seconds{consumer}
  metrics::Gauge& level_;                     // todoke_pressure
  Signal stop_asked_;
};

}  // namespace todoke::outbox
