// Readiness of libpq's socket on whatever executor the caller runs on. libpq owns the descriptor and does the
// reading and the writing; this only waits. Detach before libpq may close or replace the descriptor, or the
// reactor drops the descriptor that has taken its number. One coroutine at a time; the executor must run one
// handler at a time (a strand or a single-threaded context). Attaching and detaching cost one epoll_ctl each,
// a wait one timer.
#pragma once

#include <memory>

#include "base/async.hpp"

namespace todoke::pg {

class Socket {
 public:
  static constexpr unsigned kRead = 1;
  static constexpr unsigned kWrite = 2;

  Socket() = default;
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  // Does nothing when it is attached to this descriptor on this executor already.
  void attach(const Executor& executor, int descriptor);
  void detach();

  // Returns which of `interest` came true; 0 when the time was up or interrupt() was called.
  Task<unsigned> wait(unsigned interest, SteadyTime until);
  // Ends a wait() early. On the executor of the waiter.
  void interrupt();

 private:
  struct Watch;
  std::shared_ptr<Watch> watch_;
};

}  // namespace todoke::pg
