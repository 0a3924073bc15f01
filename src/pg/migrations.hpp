// The database's schema, as numbered files in migrations/ that are compiled into the program
// (cmake/migrations.cmake).
//
// Each file runs once, in order, in one transaction together with its row in todoke.schema_migrations; a file
// that fails leaves nothing behind. Several processes may migrate at once: one does the work under an
// advisory lock, the others wait and find it done. Refused are a file that was changed after it was applied,
// a database that is newer than the program, and one whose files have other names: a build from before the
// first release made it.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "pg/connection.hpp"

namespace todoke::pg {

struct Migration {
  std::int32_t version;
  std::string_view name;  // 0001_admin.sql is version 1, "admin"
  std::string_view sql;
};

struct AppliedMigration {
  std::int32_t version = 0;
  std::string name;
  std::string checksum;
  SystemTime applied_at;
  std::string applied_by;
};

struct MigrationReport {
  std::vector<std::int32_t> applied;  // by this call
  std::int32_t version = 0;           // of the database now
};

struct MigrationStatus {
  std::vector<AppliedMigration> applied;
  std::vector<Migration> pending;
  std::string problem;  // why migrate() would refuse; empty when it would not
};

// The files of migrations/.
std::span<const Migration> embedded_migrations();

// SHA-256 in hex.
std::string checksum(const Migration& migration);

// A database that is up to date is only read. Throws UserError for what a person must mend (versions,
// checksums, a role without the right to change the schema), std::logic_error for a list with gaps or
// duplicates, and the errors of a Connection. `applied_by` is written beside each row: the program and its
// version. `node_role` is granted what a node needs (cn_admin.grant_node), unless it has the rights of this
// connection's role anyway; empty: no role is granted anything.
Task<MigrationReport> migrate(Connection& connection, std::span<const Migration> migrations,
                              std::string applied_by = "todoke", std::string node_role = "");

// Looks only; changes nothing.
Task<MigrationStatus> migration_status(Connection& connection, std::span<const Migration> migrations,
                                       Deadline deadline);

}  // namespace todoke::pg
