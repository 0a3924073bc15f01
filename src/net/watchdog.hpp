// The one way to time out an operation on a connection: arm it before, disarm it (or arm it anew) after; when
// the time is up it barks, and the bark closes the transport. Cheap to arm again: the timer behind it moves
// only when the new end is earlier than the one it waits for already, so a busy keep-alive connection sets a
// timer once in many requests. Not thread-safe: one executor. Destroying it disarms it.
#pragma once

#include <functional>
#include <memory>

#include "base/async.hpp"

namespace todoke::net {

class Watchdog {
 public:
  Watchdog(const Executor& executor, std::function<void()> bark);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void arm(std::chrono::nanoseconds limit);
  void disarm();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace todoke::net
