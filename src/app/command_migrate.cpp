#include <cstdio>

#include <fmt/format.h>

#include "app/command.hpp"
#include "app/connection_in_use.hpp"
#include "app/database_service.hpp"
#include "app/version.hpp"
#include "pg/migrations.hpp"

namespace todoke::app {
namespace {

Task<void> migrate(pg::Connection& connection) {
  check_server_version(connection);
  const auto report =
      co_await pg::migrate(connection, pg::embedded_migrations(), fmt::format("todoke {}", kVersion));
  for (const auto version : report.applied)
    std::fputs(fmt::format("applied {:04}\n", version).c_str(), stdout);
  std::fputs(fmt::format("the database is at version {}\n", report.version).c_str(), stdout);
}

int run(const Arguments& arguments) {
  with_database(load_config(arguments), migrate);
  return 0;
}

const Registration kRegistered(Command{
    .name = "migrate",
    .summary = "bring the database to the version of this binary",
    .synopsis = "",
    .details = "`todoke up` and `todoke run` do the same when they start. Safe to run at any time and from "
               "several places at once.",
    .run = run,
});

}  // namespace
}  // namespace todoke::app
