// The archive that a person downloads, read back by libarchive's reader.
#include "users/zip.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::users {
namespace {

std::map<std::string, std::string> files_in(const std::string& zip) {
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

TEST(ZipTest, WhatComesPieceByPieceIsAnArchiveOfTheFiles) {
  ZipWriter zip;
  std::string made;
  zip.begin_file("a.jsonl");
  zip.write("{\"a\":1}\n");
  zip.write("{\"a\":2}\n");
  made += zip.take();
  zip.begin_file("empty.jsonl");
  zip.begin_file("long.jsonl");
  const std::string text(1'000'000, 'x');
  zip.write(text);
  made += zip.take();
  EXPECT_EQ(zip.waiting(), 0U);
  zip.end();
  made += zip.take();
  EXPECT_THAT(files_in(made), testing::UnorderedElementsAre(
                                  testing::Pair("a.jsonl", "{\"a\":1}\n{\"a\":2}\n"),
                                  testing::Pair("empty.jsonl", ""), testing::Pair("long.jsonl", text)));
}

TEST(ZipTest, AnArchiveWithoutFilesIsOneAllTheSame) {
  ZipWriter zip;
  zip.end();
  EXPECT_THAT(files_in(zip.take()), testing::IsEmpty());
}

}  // namespace
}  // namespace todoke::users
