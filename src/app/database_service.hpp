// The database as a dependency: reached, new enough, migrated; then looked at once a second, which is what
// `/healthz` shows.
#pragma once

#include "base/clock.hpp"
#include "base/service.hpp"
#include "pg/pool.hpp"

namespace todoke::app {

class DatabaseService final : public Service {
 public:
  DatabaseService(const Executor& executor, pg::Pool& pool, HealthBoard& board);

  [[nodiscard]] std::string_view name() const override { return "database"; }
  // Throws UserError when the server is too old, or the database newer than this binary.
  Task<void> start() override;
  Task<void> run() override;
  // Whoever uses the pool has stopped by now: it is closed, which also ends a start() that waits for a
  // server.
  void stop() override;

 private:
  Task<void> probe();

  pg::Pool& pool_;
  HealthBoard& board_;
  Signal stop_;
};

// Throws UserError when the server is older than what the SQL here needs.
void check_server_version(const pg::Connection& connection);

}  // namespace todoke::app
