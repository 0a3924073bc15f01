// The database as a dependency: reached, new enough, migrated; then looked at once a second, which is what
// `/healthz` shows.
#pragma once

#include "app/pools.hpp"
#include "base/clock.hpp"
#include "base/service.hpp"

namespace todoke::app {

class DatabaseService final : public Service {
 public:
  DatabaseService(const Executor& executor, Pools& pools, HealthBoard& board);

  [[nodiscard]] std::string_view name() const override { return "database"; }
  // Throws UserError when the server is too old, or the database newer than this binary.
  Task<void> start() override;
  Task<void> run() override;
  // Whoever uses the pools has stopped by now: they are closed, which also ends a start() that waits for a
  // server.
  void stop() override;

 private:
  Task<void> probe();

  Pools& pools_;
  HealthBoard& board_;
  Signal stop_;
};

// Throws UserError when the server is older than what the SQL here needs.
void check_server_version(const pg::Connection& connection);

}  // namespace todoke::app
