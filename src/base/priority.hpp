// Threads that yield the processor to others.
#pragma once

#include <sys/types.h>

namespace todoke {

// From now on the thread has this nice value and, where the kernel knows it (Linux 6.12), a slice of 100 ms,
// which is longer than that of others: so it gives way at once to any that wakes up. With the nice value
// alone they wait for the end of a slice, 1 to 3 ms each time (docs/decisions, 0011). `thread` is the id of a
// thread or of a process with one; 0 is the calling thread. False: it is not ours to change.
bool yield_to_others(pid_t thread, int nice);

}  // namespace todoke
