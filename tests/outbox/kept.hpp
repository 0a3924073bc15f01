// A program that is started again whenever it ends, as by a service manager, and that can be killed at any
// moment.
#pragma once

#include <mutex>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

namespace todoke::test {

class Kept {
 public:
  // Its output is thrown away.
  explicit Kept(std::vector<std::string> command);
  ~Kept() { end(); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

  // Sends a signal to the process that runs now, if there is one.
  void signal(int number);
  // SIGTERM, and no new start. Returns when it has ended.
  void end();
  [[nodiscard]] int starts() const { return starts_; }

 private:
  void keep();
  // False: it is to end.
  bool start();

  const std::vector<std::string> command_;
  std::mutex mutex_;
  pid_t pid_ = 0;  // 0: none
  bool ends_ = false;
  int starts_ = 0;
  std::thread thread_;
};

}  // namespace todoke::test
