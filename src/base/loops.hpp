// Several loops of one service that stand or fall together.
//
// Half a service is worse than none: a heartbeat that renews rows which no loop settles keeps every other
// worker from them. When a loop throws, `end_others` is called, once, and has to make the other loops end;
// join() waits for all of them and throws what the first one threw. So run() throws and the supervisor starts
// the service again. A loop that returns has ended well and ends no other. All calls come on the executor;
// the loops end before this does. Can be used again after join().
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <string>

#include "base/async.hpp"

namespace todoke {

class Loops {
 public:
  // `service`: for the log.
  Loops(Executor executor, std::string service, std::function<void()> end_others);
  ~Loops() = default;
  Loops(const Loops&) = delete;
  Loops& operator=(const Loops&) = delete;

  void launch(std::string name, Task<void> loop);

  [[nodiscard]] std::size_t running() const { return running_; }
  [[nodiscard]] bool has_failed() const { return failure_ != nullptr; }

  // Waits until at most `left` loops run. Does not throw what they threw.
  Task<void> wait(std::size_t left = 0);
  Task<void> join();

 private:
  void ended(const std::string& name, const std::exception_ptr& failure);

  Executor executor_;
  std::string service_;
  std::function<void()> end_others_;
  Signal ended_;
  std::size_t running_ = 0;
  std::exception_ptr failure_;  // of the first that died
};

}  // namespace todoke
