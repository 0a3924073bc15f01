// A node whose database was restored from a backup: numbers that were given out after the backup was made are
// not given out again.
#include <filesystem>
#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "log/rig.hpp"

namespace todoke::test {
namespace {

namespace fs = std::filesystem;

class Restore : public testing::Test {
 protected:
  std::int64_t head() { return std::stoll(node.sql("SELECT max(seq) FROM cn_relay.events_outbox")); }
  [[nodiscard]] fs::path cluster() const { return node.folder().path() / "postgres"; }

  fs::path base_backup() {
    const auto backup = aside.path() / "backup";
    const auto exit = run_command({"pg_basebackup", "-h", (node.folder().path() / "run").string(), "-U",
                                   "todoke", "-D", backup.string(), "-X", "stream", "-c", "fast"});
    EXPECT_EQ(exit.code, 0) << exit.err;
    return backup;
  }
  // Puts a copy of the backup in the place of the cluster, as an operator would.
  void put_back(const fs::path& backup) {
    struct stat owner{};
    ASSERT_EQ(::stat(cluster().c_str(), &owner), 0);
    fs::remove_all(cluster());
    fs::copy(backup, cluster(), fs::copy_options::recursive);
    const auto chowned =
        run_command({"chown", "-R", fmt::format("{}:{}", owner.st_uid, owner.st_gid), cluster().string()});
    EXPECT_EQ(chowned.code, 0) << chowned.err;
    EXPECT_EQ(::chmod(cluster().c_str(), 0700), 0);
  }

  TempFolder aside;
  LogNode node{Tcp::closed};
};

TEST_F(Restore, OfABaseBackupGivesNoSeqTwice) {
  node.publish(1, 5);
  const auto backup = base_backup();
  const auto at_backup = head();
  node.publish(1, 5);
  const auto last = head();
  ASSERT_GT(last, at_backup);
  node.stop();
  put_back(backup);
  node.start(Tcp::closed);
  EXPECT_EQ(head(), at_backup);
  node.publish(1, 5);
  EXPECT_GT(std::stoll(node.sql(
                fmt::format("SELECT min(seq) FROM cn_relay.events_outbox WHERE seq > {}", at_backup))),
            last);
  // A start is no restore.
  const auto after = head();
  node.stop();
  node.start(Tcp::closed);
  node.publish(1, 2);
  EXPECT_LT(head(), after + 1'000);
}

}  // namespace
}  // namespace todoke::test
