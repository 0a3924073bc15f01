// Waits until the database can be reached, is new enough and is migrated. Then asks it once a second, for
// `/healthz`.
#pragma once

#include <string>

#include "app/pools.hpp"
#include "base/clock.hpp"
#include "base/periodic.hpp"
#include "pg/migrations.hpp"

namespace todoke::app {

class DatabaseService final : public PeriodicService {
 public:
  // `owner_url`: of the role that migrates; empty: the role of the pools. Forgotten after the first start
  // that succeeds: nothing is left to migrate then, and the node's own role can see that.
  DatabaseService(const Executor& executor, Pools& pools, std::string owner_url, HealthBoard& board,
                  metrics::Registry& registry);

  // Throws UserError when the server is too old, or the database newer than this binary.
  Task<void> start() override;
  // All users of the pools have stopped by now. Closes the pools, which also ends a start() that waits for a
  // server.
  void stop() override;

 private:
  Task<void> round(RoundCause cause) override;
  Task<void> probe();

  Pools& pools_;
  std::string owner_url_;
  HealthBoard& board_;
};

// Migrates the database that `node` leads to, as the owner of its tables where there is one (`owner_url`).
// The owner then grants the role of `node` what a node needs.
Task<pg::MigrationReport> migrate_database(pg::Connection& node, std::string owner_url, Deadline deadline);

// Throws UserError when the server is older than what the SQL here needs.
void check_server_version(const pg::Connection& connection);

}  // namespace todoke::app
