// What Postgres and its tools write, line by line.
//
// A thread of its own reads the pipe, so that a busy executor can't fill it, and the pipe holds 1 MiB. Should
// it be full nevertheless, the writer loses the line and goes on (with `Overflow::drop`): a log must never
// stop the database.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/fd.hpp"
#include "base/log.hpp"

namespace todoke::embedded {

// Longer lines are cut; a statement in the log can be large.
inline constexpr std::size_t kOutputLineBytesMax = 4096;

// Cuts a stream of bytes into lines of at most kOutputLineBytesMax bytes; the rest of a longer one is left
// out. Lines that begin with a tab belong to the one before, as Postgres writes a statement of several lines.
class LineCutter {
 public:
  explicit LineCutter(std::function<void(std::string_view line)> on_line) : on_line_(std::move(on_line)) {}
  void feed(std::string_view bytes);
  // Gives the line that is kept because it may go on: the writer has said all that it has to say for now.
  void release();
  // A last line without its end.
  void finish();

 private:
  void end_line();
  std::function<void(std::string_view)> on_line_;
  std::string line_;  // under way
  bool overlong_ = false;
  std::string kept_;  // whole; the next one may continue it
};

class OutputPipe {
 public:
  enum class Overflow { wait, drop };

  // `on_line` is called on the reading thread.
  OutputPipe(Overflow overflow, std::function<void(std::string_view line)> on_line);
  ~OutputPipe();
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;

  // For the child. Closed by `child_has_it`, so that the end of the last writer is seen.
  [[nodiscard]] int writing_end() const { return writing_.get(); }
  void child_has_it() { writing_.reset(); }

  // Reads what is in the pipe by now (at most its size) and ends the thread. Processes that still write get
  // EPIPE.
  void finish();

 private:
  void read_lines();
  // False: end of file.
  bool read_some(std::size_t& budget);

  Fd reading_;
  Fd writing_;
  Fd wake_;
  LineCutter cutter_;
  std::thread thread_;
};

struct PostgresLine {
  log::Level level = log::Level::info;
  std::string_view severity;  // "LOG", "ERROR" …; empty for a line that continues the one before
  std::string_view text;
};

// Takes off the severity and what stands before it: "ERROR:  no such table" is an error with that text. A
// line without a severity has `level_before`, and so have DETAIL, HINT, CONTEXT and STATEMENT, which keep
// their first word.
PostgresLine parse_postgres_line(std::string_view line, log::Level level_before);

}  // namespace todoke::embedded
