#include "embedded/backup.hpp"

#include <gtest/gtest.h>

namespace todoke::embedded {
namespace {

TEST(BackupProgress, IsReadFromTheLinesOfPgBasebackup) {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  ASSERT_TRUE(parse_backup_progress("  7654/31337 kB (24%), 0/1 tablespace", done, total));
  EXPECT_EQ(done, 7654U * 1024);
  EXPECT_EQ(total, 31337U * 1024);
}

TEST(BackupProgress, OtherLinesAreNone) {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  for (const auto* line : {"", "waiting for checkpoint", "7654 kB (24%)", "a/b kB (1%)", "1/2",
                           "1/2x kB (3%)", " kB (", "99999999999999999999/1 kB (1%)"}) {
    EXPECT_FALSE(parse_backup_progress(line, done, total)) << line;
  }
}

}  // namespace
}  // namespace todoke::embedded
