#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/database_service.hpp"
#include "app/effective_config.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kMigrateConnectMax(30);

Task<void> migrate(pg::Connection& connection, std::string owner_url) {
  const auto report =
      co_await migrate_database(connection, std::move(owner_url), Deadline::after(kMigrateConnectMax));
  for (const auto version : report.applied) print(fmt::format("applied {:04}\n", version));
  print(fmt::format("the database is at version {}\n", report.version));
}

int run_migrate(const Arguments& arguments) {
  const auto config = command_config(arguments);
  const auto owner_url = database_in_use(config).owner_url;
  with_database(config, [&](pg::Connection& connection) { return migrate(connection, owner_url); });
  return 0;
}

}  // namespace

Command migrate_command() {
  return {
      .name = "migrate",
      .summary = "bring the database to the version of this binary",
      .synopsis = "",
      .details =
          "`todoke up` and `todoke run` do the same when they start. Safe to run at any time and from "
          "several places at once.\ndatabase.owner_url names the role that owns the tables; the role of "
          "database.url is granted what a node needs.",
      .run = run_migrate,
  };
}

}  // namespace todoke::app
