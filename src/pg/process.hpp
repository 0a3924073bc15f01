// A child process that coroutines wait for. Its end is seen through a pidfd: no SIGCHLD handler, no other
// child is reaped. Use it on the executor that it was spawned on, and destroy it before that executor's
// context.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>

#include "base/async.hpp"
#include "pg/process_fork.hpp"

namespace todoke::pg {

class Process {
 public:
  // Returns when the program runs (process_fork.hpp). `on_end` is called once, on the executor, when it has
  // ended.
  static Task<std::unique_ptr<Process>> spawn(ProcessSpec spec, std::function<void()> on_end);

  // A process that still runs is killed (SIGKILL) and reaped: the last resort, for callers that did not stop
  // it.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] bool ended() const;
  [[nodiscard]] bool ended_well() const;           // exit code 0
  [[nodiscard]] std::string how_it_ended() const;  // "exit code 1", "signal 9 (Killed)"

  // Has no effect on a process that ended.
  void send(int signal_number);
  // True: it has ended. False: the time was up.
  Task<bool> wait_for(std::chrono::nanoseconds limit);

 private:
  struct State;
  explicit Process(std::shared_ptr<State> state);
  static Task<void> watch(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace todoke::pg
