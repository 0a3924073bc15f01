// Descriptors of processes. A pidfd means the same process for ever, while a pid may pass to another one.
// By system call: the <sys/pidfd.h> of glibc 2.36 can't be used from C++ (its functions are not declared
// extern "C").
#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace todoke::pg {

// -1 with errno when it fails. Close-on-exec.
inline int open_pidfd(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}

// False with errno when it fails; ESRCH: the process has ended.
inline bool send_to_pidfd(int pidfd, int signal_number) {
  return ::syscall(SYS_pidfd_send_signal, pidfd, signal_number, nullptr, 0) == 0;
}

}  // namespace todoke::pg
