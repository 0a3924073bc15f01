#include "app/database_service.hpp"

#include <fmt/format.h>

#include "app/statements_sql.hpp"
#include "app/version.hpp"
#include "base/attempt.hpp"
#include "base/log.hpp"
#include "base/wipe.hpp"

namespace todoke::app {
namespace {

constexpr int kServerVersionMin = 150000;
constexpr std::chrono::seconds kProbeInterval(1);
constexpr std::chrono::seconds kProbeLimit(1);
constexpr std::chrono::minutes kMigrateLimit(10);

}  // namespace

void check_server_version(const pg::Connection& connection) {
  if (connection.server_version() >= kServerVersionMin) return;
  throw UserError(fmt::format("the database is Postgres {}, but todoke needs 15 or newer",
                              connection.server_version() / 10000));
}

Task<pg::MigrationReport> migrate_database(pg::Connection& node, std::string owner_url, Deadline deadline) {
  check_server_version(node);
  const auto by = fmt::format("todoke {}", kVersion);
  if (owner_url.empty()) co_return co_await pg::migrate(node, pg::embedded_migrations(), by);
  const auto role = co_await node.query(sql::kCurrentRole, {}, deadline);
  pg::ConnectOptions options;
  options.url = std::move(owner_url);
  const auto owner = co_await pg::Connection::connect(std::move(options), deadline);
  auto report = co_await pg::migrate(*owner, pg::embedded_migrations(), by, role.one().get<std::string>(0));
  owner->detach();
  co_return report;
}

DatabaseService::DatabaseService(const Executor& executor, Pools& pools, std::string owner_url,
                                 HealthBoard& board, metrics::Registry& registry)
    : PeriodicService(
          executor,
          {.name = "database", .failed = "the probe failed", .every = kProbeInterval, .begins_at_once = true},
          registry),
      pools_(pools),
      owner_url_(std::move(owner_url)),
      board_(board) {}

Task<void> DatabaseService::start() {
  const auto deadline = Deadline::after(kMigrateLimit);
  auto lease = co_await pools_.control.acquire(deadline);
  const auto report = co_await migrate_database(*lease, owner_url_, deadline);
  wipe(owner_url_);
  if (!report.applied.empty()) {
    log::info("database", "migrated", {{"migrations", report.applied.size()}});
  }
}

void DatabaseService::stop() {
  PeriodicService::stop();
  pools_.close();
}

Task<void> DatabaseService::round(RoundCause /*cause*/) {
  const auto probed = co_await attempt(probe());
  if (stop_asked()) co_return;
  // Every connection at work is a busy node, not a dead database. Places of those who try in vain to connect
  // count as busy, too.
  const auto& pool = pools_.control;
  const bool busy = pool.can_connect() && pool.counts().busy >= pool.connections_max();
  const auto state = probed ? HealthState::up : busy ? HealthState::degraded : HealthState::down;
  board_.report(std::string(name()), essential(), {state, probed ? "" : describe(probed.error())});
  pools_.close_expired();
}

Task<void> DatabaseService::probe() {
  const auto deadline = Deadline::after(kProbeLimit);
  auto lease = co_await pools_.control.acquire(deadline);
  co_await lease->query(sql::kProbe, {}, deadline);
}

}  // namespace todoke::app
