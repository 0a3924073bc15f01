#include "app/database_service.hpp"

#include <fmt/format.h>

#include "app/statements_sql.hpp"
#include "app/version.hpp"
#include "base/log.hpp"
#include "pg/migrations.hpp"

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

DatabaseService::DatabaseService(const Executor& executor, Pools& pools, HealthBoard& board)
    : pools_(pools), board_(board), stop_(executor) {}

Task<void> DatabaseService::start() {
  const auto deadline = Deadline::after(kMigrateLimit);
  auto lease = co_await pools_.control.acquire(deadline);
  check_server_version(*lease);
  const auto report =
      co_await pg::migrate(*lease, pg::embedded_migrations(), fmt::format("todoke {}", kVersion));
  if (!report.applied.empty()) {
    log::info("database", "migrated", {{"migrations", report.applied.size()}});
  }
}

void DatabaseService::stop() {
  stop_.set();
  pools_.close();
}

Task<void> DatabaseService::run() {
  while (!stop_.is_set()) {
    co_await probe();
    pools_.close_expired();
    co_await stop_.wait_for(kProbeInterval);
  }
}

Task<void> DatabaseService::probe() {
  std::string failure;
  try {
    const auto deadline = Deadline::after(kProbeLimit);
    auto lease = co_await pools_.control.acquire(deadline);
    co_await lease->query(sql::kProbe, {}, deadline);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  if (stop_.is_set()) co_return;
  // Every connection at work is a busy node, not a dead database.
  const bool busy = pools_.control.counts().busy >= pools_.control.connections_max();
  const auto state = failure.empty() ? HealthState::up : busy ? HealthState::degraded : HealthState::down;
  board_.report(std::string(name()), essential(), {state, failure});
}

}  // namespace todoke::app
