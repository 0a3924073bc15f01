// A child process that is asked in lines on its stdin and answers in lines on its stdout; what it writes to
// stderr goes where the node's own does. It runs as the node's user, with PATH and the locale of the node and
// none of its secrets, in the folder / (embedded/child.hpp).
//
// Nothing here waits for the program: what it does not read stays in memory, and its owner bounds that. Used
// on one executor, whose thread must outlive it. For one run.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"

namespace todoke::relay {

class PolicyProgram {
 public:
  using OnLine = std::function<void(std::string_view)>;

  PolicyProgram(Executor executor, std::vector<std::string> command, std::size_t line_bytes_max,
                OnLine on_line);
  ~PolicyProgram();
  PolicyProgram(const PolicyProgram&) = delete;
  PolicyProgram& operator=(const PolicyProgram&) = delete;

  // Whole lines; also before run().
  void send(std::string_view lines);
  // Until `stop` is set: then its stdin ends, and it is killed if it has not ended two seconds later. Throws
  // when the program can't be started, ends by itself or writes a line that is too long; sets `stop` then.
  Task<void> run(Signal& stop);

 private:
  struct Process;
  Task<void> read_lines(const Signal& stop);
  Task<void> write_lines(const Signal& stop);
  void split(std::string& text) const;

  Executor executor_;
  std::vector<std::string> command_;
  const std::size_t line_bytes_max_;
  OnLine on_line_;
  std::string unsent_;
  Signal work_;
  std::unique_ptr<Process> process_;
};

}  // namespace todoke::relay
