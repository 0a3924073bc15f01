// An embedded database of a backup.
#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/copy_progress.hpp"
#include "app/data_folder.hpp"
#include "app/instance_file.hpp"
#include "embedded/backup.hpp"

namespace todoke::app {
namespace {

int run_restore(const Arguments& arguments) {
  if (arguments.words.size() != 1) throw UsageError("restore: name one folder");
  const auto config = load_config(arguments);
  const auto database = database_in_use(config);
  if (!database.embedded) {
    throw UserError(
        fmt::format("the database is {}: a backup is restored as the embedded one, without database.url",
                    database.shown));
  }
  const auto folder = data_folder(config);
  if (const auto nodes = running_instances(folder); !nodes.empty()) {
    throw UserError(
        fmt::format("the data folder {} is in use by another todoke (pid {}): stop that one first",
                    folder.string(), nodes.front().pid));
  }
  CopyProgress progress;
  embedded::restore_backup(embedded::options_from(config, folder), arguments.words[0],
                           [&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); });
  note(fmt::format("verified and restored in {}, {}; start the node", folder.string(), progress.summary()));
  return 0;
}

}  // namespace

Command restore_command() {
  return {
      .name = "restore",
      .summary = "make an embedded database of a backup",
      .synopsis = "DIR",
      .details =
          "DIR is what `todoke backup` has made; it stays as it is. The data folder must have no database "
          "and no running node. "
          "What is copied is verified against the backup's manifest, and becomes the database only then. The "
          "node that is "
          "started on it lets its log go on with later seqs, so that consumers never see a number twice "
          "(docs/operations.md).",
      .words_max = 1,
      .run = run_restore,
  };
}

}  // namespace todoke::app
