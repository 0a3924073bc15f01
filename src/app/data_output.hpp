// Data for other programs: lines to stdout or a file, packed as gzip or zstd where that is asked for.
//
// A reader that goes away early (`| head`) ends the command: that is a UserError, as is a full disk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.hpp"

namespace todoke::app {

enum class Packing : std::uint8_t { none, gzip, zstd };

class DataOutput {
 public:
  // `path`: a file, made or emptied; empty: stdout.
  explicit DataOutput(const std::string& path = {}, Packing packing = Packing::none);
  ~DataOutput();
  DataOutput(const DataOutput&) = delete;
  DataOutput& operator=(const DataOutput&) = delete;

  // Buffered; `text` has no line end.
  void line(std::string_view text);
  // Everything so far is with the reader, who can unpack it.
  void flush();
  // Ends the packed stream, and of a file waits until it is on the disk. To be called last.
  void finish();

  class Packer;
  enum class Step : std::uint8_t { go_on, flush, end };

 private:
  void pack(Step step);
  void write_out(std::string_view bytes) const;

  std::string name_;
  Fd own_;
  int fd_;
  std::unique_ptr<Packer> packer_;
  std::string buffer_;
};

}  // namespace todoke::app
