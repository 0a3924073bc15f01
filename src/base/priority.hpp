// Who goes first when there are more threads that could run than processors.
#pragma once

#include <sys/types.h>

namespace todoke {

enum class Priority {
  ordinary,
  // Gives way at once to an ordinary thread that wakes up: its nice value is the process's own and five more,
  // and where the kernel knows it (Linux 6.12) its slice is 100 ms, longer than that of others. With the nice
  // value alone they would wait for the end of a slice, 1 to 3 ms each time (docs/decisions, 0011).
  background,
  // The same with ten more. Where this process may use several processors it also keeps off the first of
  // them, so that one is always left for everybody else.
  last,
};

// `thread` is the id of a thread or of a process with one; 0 is the calling thread. Once lowered a thread
// stays so: raising it again takes a privilege. False: it is not ours to change.
bool set_priority(pid_t thread, Priority priority);

}  // namespace todoke
