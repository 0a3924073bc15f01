// The database as a dependency: reached, new enough, migrated; then looked at once a second, which is what
// `/healthz` shows.
#pragma once

#include "app/pools.hpp"
#include "base/clock.hpp"
#include "base/periodic.hpp"

namespace todoke::app {

class DatabaseService final : public PeriodicService {
 public:
  DatabaseService(const Executor& executor, Pools& pools, HealthBoard& board, metrics::Registry& registry);

  // Throws UserError when the server is too old, or the database newer than this binary.
  Task<void> start() override;
  // Whoever uses the pools has stopped by now: they are closed, which also ends a start() that waits for a
  // server.
  void stop() override;

 private:
  Task<void> round(RoundCause cause) override;
  Task<void> probe();

  Pools& pools_;
  HealthBoard& board_;
};

// Throws UserError when the server is older than what the SQL here needs.
void check_server_version(const pg::Connection& connection);

}  // namespace todoke::app
