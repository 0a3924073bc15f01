// What an earlier Postgres on the same cluster may have left behind: processes that still run, and lock
// files. A process is known by where it stands: every process of Postgres works in its cluster's folder,
// under whatever path it was started. The number in a lock file alone proves nothing, as it may belong to
// another program by now.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace todoke::embedded {

// The processes of Postgres that work in `cluster`. Looks at all of /proc: a few milliseconds for a thousand
// processes.
std::vector<pid_t> processes_of_cluster(const std::string& cluster);

// Sends the signal when `pid` is a process of this cluster at that moment.
void signal_cluster_process(pid_t pid, const std::string& cluster, int signal_number);

// The first line of a lock file (postmaster.pid, .s.PGSQL.5432.lock).
std::optional<pid_t> lock_file_pid(const std::string& lock_file);

// Whether the postmaster `pid` says in its lock file that it accepts connections.
bool postmaster_is_ready(const std::string& cluster, pid_t pid);

// Removes a lock file whose pid belongs to a live process that is no Postgres on this cluster. Postgres
// itself would take such a process for a postmaster and refuse to start. Lock files of dead processes are
// left to Postgres, and those of processes that can't be told apart too. True: it was removed.
bool remove_recycled_lock(const std::string& lock_file, const std::string& cluster);

}  // namespace todoke::embedded
