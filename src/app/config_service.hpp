// Keeps the live configuration equal to the database's: seeds it at the first start, and reads it when NOTIFY
// says that it changed and every 30 s. What is refused shows in health (`configuration`), in
// todoke_config_refused and in the log; the node goes on with the last good values.
#pragma once

#include <string>
#include <vector>

#include "base/live_config.hpp"
#include "base/metrics.hpp"
#include "base/periodic.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::app {

class ConfigService final : public PeriodicService {
 public:
  ConfigService(const Executor& executor, LiveConfig& live, pg::Pool& pool, pg::Listener& listener,
                HealthBoard& health, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;

  // Logs, once, which values have no effect: a stronger layer hides them, or their key was removed. Also
  // after the file was read again.
  void tell_hidden();

 private:
  Task<void> round(RoundCause cause) override;
  void report();

  LiveConfig& live_;
  pg::Pool& pool_;
  pg::Listener& listener_;
  HealthBoard& health_;
  metrics::Family<metrics::Gauge>& version_;  // todoke_config_version{service}
  metrics::Gauge& refused_;                   // todoke_config_refused
  pg::Listener::Subscription subscription_;
  std::vector<ConfigRow> seen_;
  std::vector<std::string> told_problems_;
  std::vector<std::string> told_hidden_;
};

}  // namespace todoke::app
