// Watches how far the consumers are behind: a metric for each, the node's pressure (its input of the backlog,
// and the whole of it as seen), a health line and a log line when it changes. Also tells whether any node
// runs the consumers that this one needs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/periodic.hpp"
#include "outbox/pressure.hpp"
#include "pg/pool.hpp"

namespace todoke::outbox {

// A consumer without which something that is switched on here does not work.
struct NeededConsumer {
  std::string name;
  std::string role;  // that runs it
  std::string key;   // of the configuration, such as relay.search; also its health line
};

struct MonitorOptions {
  PressureThresholds thresholds;
  std::vector<NeededConsumer> needed;
  // Looks in a row, one a second, that may find a needed consumer not running: a node that starts or takes
  // over needs a lease first.
  int looks_without_max = 15;
};

class LogMonitor final : public PeriodicService {
 public:
  LogMonitor(const Executor& executor, MonitorOptions options, Pressure& pressure, pg::Pool& pool,
             HealthBoard& health, metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;

  // On the executor; holds from the next look on.
  void set_thresholds(const PressureThresholds& thresholds) { options_.thresholds = thresholds; }

 private:
  Task<void> round(RoundCause cause) override;
  void report(std::int64_t backlog, const std::string& slowest);

  // A consumer as it was last seen.
  struct Seen {
    bool held = false;
    bool paused = false;
    std::string state;
  };
  struct Watched {
    NeededConsumer consumer;
    int looks_without = 0;
    bool is_told = false;
  };
  void report_lost(const std::map<std::string, Seen>& seen);
  void watch(Watched& watched, const Seen& seen);

  MonitorOptions options_;
  std::vector<Watched> watched_;
  std::vector<std::string> known_;  // consumers of the last look: one that was removed is not behind
  Pressure& pressure_;
  pg::Pool& pool_;
  HealthBoard& health_;
  metrics::Family<metrics::Gauge>& backlog_;  // todoke_outbox_backlog{consumer}
  metrics::Family<metrics::Gauge>& lag_;      // todoke_outbox_lag_seconds{consumer}
  metrics::Gauge& level_;                     // todoke_pressure
  metrics::Gauge* backlog_level_ = nullptr;   // todoke_pressure_cause{cause="backlog"}
  metrics::Gauge* capacity_level_ = nullptr;  // todoke_pressure_cause{cause="capacity"}
  int told_ = 0;                              // the level that the log has
};

}  // namespace todoke::outbox
