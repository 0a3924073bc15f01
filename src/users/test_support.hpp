// For tests: what a zip file holds.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace todoke::users {

// The names and contents of the files.
inline std::map<std::string, std::string> unzipped(const std::string& zip) {
  std::map<std::string, std::string> files;
  auto* reader = archive_read_new();
  archive_read_support_format_zip(reader);
  EXPECT_EQ(archive_read_open_memory(reader, zip.data(), zip.size()), ARCHIVE_OK);
  archive_entry* entry = nullptr;
  while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    auto& content = files[archive_entry_pathname(entry)];
    std::string piece(4'096, '\0');
    la_ssize_t size = 0;
    while ((size = archive_read_data(reader, piece.data(), piece.size())) > 0)
      content.append(piece, 0, static_cast<std::size_t>(size));
    EXPECT_EQ(size, 0) << archive_error_string(reader);
  }
  archive_read_free(reader);
  return files;
}

}  // namespace todoke::users
