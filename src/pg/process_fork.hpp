// fork and exec of a helper program, with everything that a supervised child needs:
//
//  - it gives up the rights of root (groups, gid, uid) when an identity is given;
//  - it leads a session of its own, so that Ctrl-C in the terminal reaches only todoke;
//  - it gets SIGINT when todoke dies, however it dies (PR_SET_PDEATHSIG). The kernel sends that signal when
//  the *thread*
//    that forked ends, so all forks happen on one thread of this file that lives as long as the process;
//  - it has no descriptors but stdin (/dev/null), stdout and stderr (`output_fd`) and `keep_fds`; umask 077;
//  cwd /;
//    default signal handling, except that SIGPIPE is ignored: a reader that went away must not kill it.
//
// Between fork and exec only async-signal-safe calls are made. Blocking, some milliseconds: call it through
// run_blocking.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace todoke::pg {

// Whom a child runs as.
struct Identity {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

struct ProcessSpec {
  std::vector<std::string> argv;         // argv[0] is the program's absolute path
  std::vector<std::string> environment;  // NAME=value; nothing else is inherited
  std::optional<Identity> identity;      // none: as todoke itself
  int output_fd = -1;                    // stdout and stderr of the child
  std::vector<int> keep_fds;             // open in the child under the same numbers
};

// Returns when the program runs; throws std::runtime_error that names the step that failed.
// The caller reaps the child.
pid_t fork_and_exec(const ProcessSpec& spec);

// Whether `identity` can open all these folders by their paths (folders above them may be closed to it).
bool can_reach(const std::optional<Identity>& identity, const std::vector<std::string>& folders);

// What a child is given of todoke's own environment: PATH, TZ and LD_LIBRARY_PATH, and a fixed locale, so
// that messages are in English. No PG… variables (they would change what Postgres does) and no secrets of
// todoke.
std::vector<std::string> child_environment();

}  // namespace todoke::pg
