// The archive that a person downloads, read back by libarchive's reader.
#include "users/zip.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "users/test_support.hpp"

namespace todoke::users {
namespace {

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
  EXPECT_THAT(unzipped(made), testing::UnorderedElementsAre(
                                  testing::Pair("a.jsonl", "{\"a\":1}\n{\"a\":2}\n"),
                                  testing::Pair("empty.jsonl", ""), testing::Pair("long.jsonl", text)));
}

TEST(ZipTest, AnArchiveWithoutFilesIsOneAllTheSame) {
  ZipWriter zip;
  zip.end();
  EXPECT_THAT(unzipped(zip.take()), testing::IsEmpty());
}

}  // namespace
}  // namespace todoke::users
