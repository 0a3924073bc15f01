// The programs that todoke starts: Postgres and its tools, and the operator's own (relay.policy_command).
//
// setpriv gives up the rights of root and sets the signal that the kernel sends when todoke dies; posix_spawn
// does the rest. A child
//  - runs as `identity`, or as todoke itself;
//  - leads a session of its own, so that Ctrl-C in the terminal reaches only todoke;
//  - gets SIGINT when todoke dies, however it dies. The kernel sends that signal when the *thread* that
//    started the child ends: a Child is started by the thread of its executor, which must outlive it. A
//    todoke that dies within the millisecond before setpriv has run leaves the child to the next start
//    (leftovers.hpp);
//  - has no descriptors but stdin (`input_fd`, or /dev/null), stdout (`output_fd`), stderr (`error_fd`, or as
//    stdout) and those of `folders`; cwd /;
//    default signal handling.
//
// The end of a Child is seen through a pidfd: no SIGCHLD handler, no other child is reaped.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/async.hpp"
#include "base/fd.hpp"

namespace todoke::embedded {

// The user that a child runs as, with all its groups.
struct Identity {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct Program {
  std::vector<std::string> argv{};     // argv[0] is the program's absolute path
  std::optional<Identity> identity{};  // none: as todoke itself
  int output_fd = -1;                  // stdout of the child
  // Open in the child as 3, 4 and so on; themselves 10 or more (SeenFolder).
  std::vector<int> folders{};
  int input_fd = -1;  // none: /dev/null
  int error_fd = -1;  // none: as output_fd
};

inline constexpr int kFirstFolderFd = 3;
inline constexpr int kParentFolderFdMin = 10;

// Starts the program; returns at once. Throws std::system_error when setpriv can't be run; a program that
// setpriv can't run shows by exit code 126 or 127 and a line on stderr. The caller reaps the child. Blocks
// for less than a millisecond.
pid_t spawn_program(const Program& program);

// Runs the program to its end, blocking. True: exit code 0.
bool run_program(const Program& program);

// A child that coroutines wait for. Use it on the executor that it was spawned on, and destroy it before that
// executor's context.
class Child {
 public:
  // `on_end` is called once, on the executor, when the program has ended.
  static Task<std::unique_ptr<Child>> spawn(Program program, std::function<void()> on_end);

  // A child that still runs is killed (SIGKILL) and reaped: the last resort, for callers that did not stop
  // it.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] bool ended() const;
  [[nodiscard]] bool ended_well() const;           // exit code 0
  [[nodiscard]] std::string how_it_ended() const;  // "exit code 1", "signal 9 (Killed)"

  // Has no effect on a child that ended.
  void send(int signal_number);
  // True: it has ended. False: the time was up.
  Task<bool> wait_for(std::chrono::nanoseconds limit);

 private:
  struct State;
  explicit Child(std::shared_ptr<State> state);
  static Task<void> watch(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

// A pidfd means the same process for ever, while a pid may pass to another one. None with errno when there is
// no such process.
Fd open_pidfd(pid_t pid);
// False with errno when it fails; ESRCH: the process has ended.
bool send_to_pidfd(int pidfd, int signal_number);

}  // namespace todoke::embedded
