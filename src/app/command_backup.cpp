// A copy of the embedded database while it works.
#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/copy_progress.hpp"
#include "app/data_folder.hpp"
#include "app/effective_config.hpp"
#include "embedded/backup.hpp"

namespace todoke::app {
namespace {

int run_backup(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw UsageError("backup: name one folder");
  const auto config = command_config(arguments);
  const auto database = database_in_use(config);
  if (!database.embedded) {
    throw UserError(fmt::format(
        "the database is {}: back it up by its own means, such as pg_basebackup or pg_dump", database.shown));
  }
  refuse_stopped(config, database);
  CopyProgress progress;
  embedded::take_backup(embedded::options_from(config, data_folder(config)), arguments.words[0],
                        [&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); });
  note(fmt::format("backed up and verified, {}; `todoke restore {}` makes a database of it",
                   progress.summary(), arguments.words[0]));
  return 0;
}

}  // namespace

Command backup_command() {
  return {
      .name = "backup",
      .summary = "copy the embedded database into a folder while it works",
      .synopsis = "DIR",
      .details =
          "DIR is made, or must be empty. It gets a base backup with the WAL that was written meanwhile: "
          "everything that the "
          "node has acknowledged before the backup ends. Then every file is verified against the backup's "
          "manifest. The node "
          "goes on working. Configuration, gossip.key and certificates are not in it; the data is, so guard "
          "it like the data "
          "folder. As root the files belong to the user that Postgres runs as.",
      .words_max = 1,
      .run = run_backup,
  };
}

}  // namespace todoke::app
