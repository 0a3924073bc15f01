// The lines of a file or of stdin, with their numbers; gzip and zstd are unpacked on the way.
//
// Blocking, so that a caller with an event loop calls it by run_blocking; it gives back what it has after a
// short while, also where a pipe stays silent. Bounded: a line longer than kLineBytesMax is skipped and told
// as such, and never held. Empty lines are counted and not given.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/decoder.hpp"
#include "base/fd.hpp"

namespace todoke::app {

class LineSource {
 public:
  // An event's JSON is smaller, in whatever way it is written (nostr::kEventTextBytesMax).
  static constexpr std::size_t kLineBytesMax = 1024 * 1024;

  struct Line {
    std::uint64_t number = 0;  // from 1 on
    std::string text;          // without its end; empty when too_long
    bool too_long = false;
  };

  // `path`: a file, or `-` for stdin. Throws UserError when it can't be opened.
  explicit LineSource(const std::string& path);

  // Up to `lines_max` lines; fewer, or none, when `wait` is over or the file ends. Throws UserError when it
  // can't be read further: also for a compressed file that is broken or cut off. The whole lines before that
  // were given.
  std::vector<Line> read(std::size_t lines_max, std::chrono::milliseconds wait);
  [[nodiscard]] bool ended() const { return ended_; }

  // Of the file as it lies there, compressed or not; no total for a pipe.
  [[nodiscard]] std::uint64_t bytes_read() const { return bytes_read_; }
  [[nodiscard]] std::optional<std::uint64_t> bytes_total() const { return bytes_total_; }

 private:
  // False: nothing came within `wait`.
  bool fill(std::chrono::milliseconds wait);
  bool decode();
  void cut_lines(std::vector<Line>& lines, std::size_t lines_max);
  void end_line(std::string_view rest, std::vector<Line>& lines);
  void finish(std::vector<Line>& lines);

  std::string name_;
  Fd own_;
  int fd_;
  std::optional<std::uint64_t> bytes_total_;
  std::uint64_t bytes_read_ = 0;
  std::unique_ptr<Decoder> decoder_;
  std::string packed_;      // read and not yet decoded
  std::string text_;        // decoded and not yet cut
  std::size_t cut_at_ = 0;  // text_ before this is given
  std::string line_;        // the beginning of a line
  bool too_long_ = false;
  std::uint64_t number_ = 0;
  bool file_ended_ = false;
  bool ended_ = false;
  std::string failure_;  // to be thrown when all lines before it were given
};

}  // namespace todoke::app
