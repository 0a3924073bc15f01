// A copy of the running cluster in a folder, and a cluster made of such a copy.
//
//   take_backup      pg_basebackup: all files and the WAL written meanwhile ──▶ folder ──▶ pg_verifybackup
//   restore_backup   folder ──copy──▶ a folder beside the cluster's place ──▶ pg_verifybackup ──▶ its name
//
// Promises: everything that was acknowledged before pg_basebackup ended the backup is in the copy, and the
// server works on meanwhile. The cluster is there wholly or not at all, and the folder of the backup stays as
// it is. Both are verified against the backup's manifest, file by file, and the WAL by its own checksums. As
// root, whatever reads or writes files of a cluster runs as the user that Postgres runs as. A log that is
// restored goes on with later seqs (docs/decisions/0010).
//
// Blocking, for commands: as long as the disks take to read and write everything, twice.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "embedded/config.hpp"

namespace todoke::embedded {

// Bytes, of an estimate that may be exceeded. May be called on another thread, while the caller waits.
using BackupProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// The server of `options` must run. `folder` is made, or must be empty. Throws UserError with what to mend.
void take_backup(const Options& options, const std::string& folder, const BackupProgress& on_progress);

// Makes the cluster of the data folder in `options`, where there must be none yet and no node. Throws
// UserError with what to mend; nothing is left behind then.
void restore_backup(const Options& options, const std::string& folder, const BackupProgress& on_progress);

// Pure: what a line of `pg_basebackup --progress` says, in bytes; false: something else.
bool parse_backup_progress(const std::string& line, std::uint64_t& done, std::uint64_t& total);

}  // namespace todoke::embedded
