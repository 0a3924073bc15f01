// Writes a zip archive piece by piece, by libarchive: its size need not be known, and nothing of it but the
// last bytes is kept. Used by one coroutine.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace todoke::users {

class ZipWriter {
 public:
  ZipWriter();
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  // The file before it is ended.
  void begin_file(const std::string& name);
  void write(std::string_view bytes);
  // Ends the archive.
  void end();
  // What has been made since the last call.
  [[nodiscard]] std::string take();
  [[nodiscard]] std::size_t waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace todoke::users
