#include "pg/migrations.hpp"

#include <array>
#include <exception>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/sha256.hpp"
#include "pg/error.hpp"
#include "pg/migrations_sql.hpp"
#include "pg/transaction.hpp"

namespace todoke::pg {

namespace {

// A large index may take hours to build, and the processes that wait for it do so as long.
constexpr std::chrono::hours kFileMax(12);
constexpr std::chrono::hours kLockWaitMax(12);
constexpr std::chrono::seconds kBookMax(60);

constexpr std::string_view kBookSql = R"sql(
CREATE SCHEMA IF NOT EXISTS todoke;
CREATE TABLE IF NOT EXISTS todoke.schema_migrations (
  version    integer PRIMARY KEY,
  name       text NOT NULL,
  checksum   text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  applied_by text NOT NULL
);
)sql";

void check_list(std::span<const Migration> migrations) {
  for (std::size_t i = 0; i < migrations.size(); ++i) {
    const auto expected = static_cast<std::int32_t>(i) + 1;
    if (migrations[i].version != expected) {
      throw std::logic_error(fmt::format("migrations must count 1, 2, 3 …: {} stands where {} should",
                                         migrations[i].version, expected));
    }
  }
}

std::string find_problem(std::span<const Migration> migrations,
                         const std::vector<AppliedMigration>& applied) {
  for (std::size_t i = 0; i < applied.size(); ++i) {
    const auto& row = applied[i];
    if (row.version < 1 || static_cast<std::size_t>(row.version) > migrations.size()) {
      return fmt::format(
          "database is newer than this binary: it has migration {:04} ({}), this binary knows {}; install a "
          "newer todoke",
          row.version, row.name, migrations.size());
    }
    if (static_cast<std::size_t>(row.version) != i + 1) {
      return fmt::format(
          "migration {:04} is missing in the database although later ones were applied; restore a backup",
          i + 1);
    }
    if (row.name != migrations[i].name) {
      return fmt::format(
          "an early build of todoke made this database, and no later one can take it over: its migration "
          "{:04} is {}, that of this binary is {}; start with an empty database",
          row.version, row.name, migrations[i].name);
    }
    if (row.checksum != checksum(migrations[i])) {
      return fmt::format(
          "migration {:04} was changed after it was applied ({} at that time); install the todoke that "
          "applied it, or a "
          "later release",
          row.version, row.name);
    }
  }
  return {};
}

Task<std::vector<AppliedMigration>> list_applied(Connection& connection) {
  const auto rows = co_await connection.query(sql::kListMigrations, {}, Deadline::after(kBookMax));
  std::vector<AppliedMigration> applied;
  for (const auto& row : rows) {
    applied.push_back({row.get<std::int32_t>(0), row.get<std::string>(1), row.get<std::string>(2),
                       row.get<SystemTime>(3), row.get<std::string>(4)});
  }
  co_return applied;
}

Task<void> apply(Connection& connection, const Migration& migration, const std::string& applied_by) {
  const auto deadline = Deadline::after(kFileMax);
  auto transaction = co_await begin(connection, deadline);
  co_await connection.execute_script(std::string(migration.sql), deadline);
  if (!connection.in_transaction()) {
    throw std::logic_error(fmt::format("migration {:04} ends its transaction itself", migration.version));
  }
  Params params(migration.version, migration.name, checksum(migration), applied_by);
  co_await connection.query(sql::kRecordMigration, std::move(params), deadline);
  co_await transaction.commit(deadline);
  log::info("pg", "migration applied", {{"version", migration.version}, {"name", migration.name}});
}

// A database that is up to date is only read: its role may have no right to do more.
Task<void> prepare_book(Connection& connection, std::size_t pending) {
  const auto deadline = Deadline::after(kBookMax);
  const auto rights = co_await connection.query(sql::kMayMigrate, {}, deadline);
  if (!rights.one().get<bool>(0)) {
    throw UserError(
        fmt::format("the database lacks {} migrations, and its role {} may not change the schema: set "
                    "database.owner_url, or run `todoke migrate` with it (docs/database.md)",
                    pending, rights.one().get<std::string>(1)));
  }
  co_await connection.execute_script(std::string(kBookSql), deadline);
}

Task<MigrationReport> migrate_locked(Connection& connection, std::span<const Migration> migrations,
                                     const std::string& applied_by, const std::string& node_role) {
  const auto status = co_await migration_status(connection, migrations, Deadline::after(kBookMax));
  if (!status.problem.empty()) throw UserError(status.problem);
  MigrationReport report;
  if (!status.pending.empty()) co_await prepare_book(connection, status.pending.size());
  for (const auto& migration : status.pending) {
    co_await apply(connection, migration, applied_by);
    report.applied.push_back(migration.version);
  }
  report.version = static_cast<std::int32_t>(migrations.size());
  if (!node_role.empty()) {
    Params params(node_role, !report.applied.empty());
    co_await connection.query(sql::kGrantNode, std::move(params), Deadline::after(kBookMax));
  }
  co_return report;
}

}  // namespace

std::string checksum(const Migration& migration) {
  return to_hex(sha256({migration.sql}));
}

Task<MigrationReport> migrate(Connection& connection, std::span<const Migration> migrations,
                              std::string applied_by, std::string node_role) {
  check_list(migrations);
  co_await connection.query(sql::kLockMigrations, {}, Deadline::after(kLockWaitMax));
  auto report = co_await attempt(migrate_locked(connection, migrations, applied_by, node_role));
  // The unlocking call rolls back what a failed file left open. A connection that broke has let go of the
  // lock already.
  if (connection.usable()) co_await connection.query(sql::kUnlockMigrations, {}, Deadline::after(kBookMax));
  if (!report) std::rethrow_exception(report.error());
  co_return std::move(*report);
}

Task<MigrationStatus> migration_status(Connection& connection, std::span<const Migration> migrations,
                                       Deadline deadline) {
  check_list(migrations);
  MigrationStatus status;
  const auto exists = co_await connection.query(sql::kMigrationsExist, {}, deadline);
  if (!exists.one().get<bool>(1)) {
    status.problem = fmt::format(
        "the role {} has no rights in this database: `todoke migrate` with database.owner_url gives it what "
        "a "
        "node needs (docs/database.md)",
        exists.one().get<std::string>(2));
    co_return status;
  }
  if (exists.one().get<bool>(0)) status.applied = co_await list_applied(connection);
  status.problem = find_problem(migrations, status.applied);
  if (status.problem.empty()) {
    const auto pending = migrations.subspan(status.applied.size());
    status.pending.assign(pending.begin(), pending.end());
  }
  co_return status;
}

}  // namespace todoke::pg
