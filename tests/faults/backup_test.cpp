// `todoke backup` under load and `todoke restore`: what was acknowledged before the backup's end is there,
// whole, and the log, the node and its consumers go on.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/publisher.hpp"
#include "faults/rig.hpp"

namespace todoke::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

Exit todoke_in(const fs::path& data_dir, std::vector<std::string> words,
               const std::vector<std::string>& environment = {}) {
  words.insert(words.begin(), todoke_binary());
  words.insert(words.end(), {"--data_dir", data_dir.string()});
  return run_command(words, environment);
}

// Where the WAL of the backup ends.
std::string end_of(const fs::path& backup) {
  std::ifstream file(backup / "backup_manifest");
  std::stringstream text;
  text << file.rdbuf();
  const auto manifest = text.str();
  std::smatch found;
  if (!std::regex_search(manifest, found, std::regex(R"re("End-LSN": "([0-9A-F]+/[0-9A-F]+)")re")))
    throw std::runtime_error("no End-LSN in " + manifest);
  return found[1];
}

// A file of tables, as large as they come.
fs::path largest_file(const fs::path& folder) {
  fs::path largest;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  return largest;
}

class Backup : public testing::Test {
 protected:
  [[nodiscard]] fs::path backup() const { return aside.path() / "backup"; }

  TempFolder folder;
  TempFolder other;
  TempFolder aside;
};

TEST_F(Backup, TakenUnderLoadHasAllThatWasAcknowledgedBeforeItsEndAndTheLogGoesOn) {
  // Of an acknowledged event: where the WAL was afterwards.
  std::map<std::string, std::string> acknowledged_at;
  std::set<std::string> log_before;
  std::int64_t cursor = 0;
  {
    RelayProcess node(folder.path(), {"--relay.search", "on"});
    SqlSession database(conninfo_of(folder.path()));
    Load load(node.public_address(), 4, 1'500);
    load.wait_until_accepted(1'000);
    NostrClient client(node.url());
    cursor = client.stored(R"({"#t":["kukuri:global"],"limit":1})").cursor();
    ChildProcess command({todoke_binary(), "backup", backup().string(), "--data_dir", folder.path().string()},
                         {});
    const auto key = nostr::SecretKey::generate();
    while (!command.has_ended()) {
      const auto event = note(key, std::to_string(acknowledged_at.size()));
      if (client.publish(event).accepted)
        acknowledged_at.emplace(event.id().hex(), database.value("SELECT pg_current_wal_insert_lsn()"));
    }
    const auto exit = command.wait();
    ASSERT_EQ(exit.code, 0) << exit.err;
    EXPECT_EQ(exit.out, "");
    EXPECT_THAT(exit.err, AllOf(HasSubstr("backed up and verified"), HasSubstr("todoke restore")));
    EXPECT_THAT(load.finish().odd, IsEmpty());
    EXPECT_TRUE(client.publish(note(key, "after the backup")).accepted);
    for (const auto& row :
         database.run("SELECT seq || ' ' || op || ' ' || event_id FROM cn_relay.events_outbox"))
      log_before.insert(row);
    EXPECT_EQ(node.stop().code, 0);
  }

  const auto restored = todoke_in(other.path(), {"restore", backup().string()});
  ASSERT_EQ(restored.code, 0) << restored.err;
  EXPECT_THAT(restored.err, HasSubstr("verified and restored in " + other.path().string()));
  RelayProcess node(other.path(), {"--relay.search", "on"});
  SqlSession database(conninfo_of(other.path()));
  const auto there = stored_ids(database);
  std::size_t before_the_end = 0;
  for (const auto& [id, lsn] : acknowledged_at) {
    if (database.value(fmt::format("SELECT '{}'::pg_lsn <= '{}'::pg_lsn", lsn, end_of(backup()))) != "t")
      continue;
    ++before_the_end;
    EXPECT_TRUE(there.contains(id)) << "acknowledged before the end of the backup, and lost";
  }
  EXPECT_GT(before_the_end, 0U);
  EXPECT_GE(there.size(), 1'000U);
  EXPECT_EQ(problems_in_store(database), "");

  // The beginning of the log as it was, without a gap; what comes now has seqs that were never given out.
  const auto rows =
      database.run("SELECT seq || ' ' || op || ' ' || event_id FROM cn_relay.events_outbox ORDER BY seq");
  std::int64_t highest = 0;
  for (const auto& row : log_before) highest = std::max(highest, std::int64_t{std::stoll(row)});
  for (const auto& row : rows) EXPECT_TRUE(log_before.contains(row)) << row;
  const auto last_kept = std::stoll(rows.back());
  EXPECT_EQ(std::count_if(log_before.begin(), log_before.end(),
                          [&](const auto& row) { return std::stoll(row) <= last_kept; }),
            static_cast<std::ptrdiff_t>(rows.size()));
  const auto late = note(nostr::SecretKey::generate(), "after the restore");
  NostrClient client(node.url());
  ASSERT_TRUE(client.publish(late).accepted);
  EXPECT_GT(std::stoll(database.value("SELECT seq FROM cn_relay.events_outbox WHERE event_id = '" +
                                      late.id().hex() + "'")),
            highest);

  // Consumers go on: a subscriber by the cursor that it had, and the search index.
  std::set<std::string> seen;
  for (bool more = true; more;) {
    const auto page =
        client.request("s", fmt::format(R"({{"#t":["kukuri:global"],"seq_after":{}}})", cursor));
    seen.insert(page.ids.begin(), page.ids.end());
    cursor = page.cursor();
    more = page.has_more();
  }
  EXPECT_TRUE(seen.contains(late.id().hex()));
  wait_until("the index to have taken the log", [&] {
    return database.value(
               "SELECT last_seq >= (SELECT max(seq) FROM cn_relay.events_outbox) FROM "
               "cn_relay.consumer_offsets "
               "WHERE consumer = 'index-v1'") == "t";
  });
  EXPECT_THAT(client.stored(R"({"#t":["kukuri:global"],"search":"restore"})").ids,
              testing::Contains(late.id().hex()));
  EXPECT_EQ(todoke_in(other.path(), {"audit"}).code, 0);
}

TEST_F(Backup, BelongsToTheUserOfPostgresAndIsClosedToOthers) {
  RelayProcess node(folder.path());
  ASSERT_EQ(todoke_in(folder.path(), {"backup", backup().string()}).code, 0);
  EXPECT_EQ(fs::status(backup()).permissions(), fs::perms::owner_all);
  const auto owner = [](const fs::path& path) {
    return run_command({"stat", "-c", "%U", path.string()}).out;
  };
  EXPECT_EQ(owner(backup() / "PG_VERSION"), owner(folder.path() / "postgres/PG_VERSION"));
  EXPECT_EQ(node.stop().code, 0);
  ASSERT_EQ(todoke_in(other.path(), {"restore", backup().string()}).code, 0);
  EXPECT_EQ(owner(other.path() / "postgres/PG_VERSION"), owner(backup() / "PG_VERSION"));
  EXPECT_EQ(fs::status(other.path() / "postgres").permissions(), fs::perms::owner_all);
}

TEST_F(Backup, GoesIntoANewOrAnEmptyFolderAndNeedsARunningNode) {
  const auto stopped = todoke_in(folder.path(), {"backup", backup().string()});
  EXPECT_EQ(stopped.code, 1);
  EXPECT_THAT(stopped.err, HasSubstr("no node runs on " + folder.path().string()));
  EXPECT_FALSE(fs::exists(backup()));
  EXPECT_EQ(todoke_in(folder.path(), {"backup"}).code, 2);
  EXPECT_EQ(todoke_in(folder.path(), {"backup", "one", "two"}).code, 2);

  RelayProcess node(folder.path());
  fs::create_directory(backup());
  std::ofstream(backup() / "mine") << "kept";
  const auto used = todoke_in(folder.path(), {"backup", backup().string()});
  EXPECT_EQ(used.code, 1);
  EXPECT_THAT(used.err, HasSubstr(backup().string() + " is not empty"));
  EXPECT_TRUE(fs::exists(backup() / "mine"));
  const auto file = todoke_in(folder.path(), {"backup", (backup() / "mine").string()});
  EXPECT_THAT(file.err, HasSubstr("is no folder"));
  const auto nowhere = todoke_in(folder.path(), {"backup", (aside.path() / "no/where").string()});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("can't be made"));

  const auto elsewhere = todoke_in(other.path(), {"backup", (aside.path() / "b").string()},
                                   {"DATABASE_URL=" + conninfo_of(folder.path())});
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_THAT(elsewhere.err, HasSubstr("back it up by its own means"));
}

TEST_F(Backup, IsNeverRestoredOverADatabaseOrBesideANode) {
  RelayProcess node(folder.path());
  ASSERT_EQ(todoke_in(folder.path(), {"backup", backup().string()}).code, 0);
  const auto running = todoke_in(folder.path(), {"restore", backup().string()});
  EXPECT_EQ(running.code, 1);
  EXPECT_THAT(running.err,
              HasSubstr("in use by another todoke (pid " + std::to_string(node.process().pid()) + ")"));
  EXPECT_EQ(node.stop().code, 0);
  const auto used = todoke_in(folder.path(), {"restore", backup().string()});
  EXPECT_EQ(used.code, 1);
  EXPECT_THAT(used.err, HasSubstr((folder.path() / "postgres").string() + " is there already"));
  const auto configured =
      todoke_in(other.path(), {"restore", backup().string()}, {"DATABASE_URL=host=/nowhere"});
  EXPECT_EQ(configured.code, 1);
  EXPECT_THAT(configured.err, HasSubstr("without database.url"));
  EXPECT_EQ(todoke_in(other.path(), {"restore"}).code, 2);
}

TEST_F(Backup, ThatIsDamagedOrNotWholeIsRefusedAndLeavesNothing) {
  {
    RelayProcess node(folder.path());
    ASSERT_EQ(todoke_in(folder.path(), {"backup", backup().string()}).code, 0);
  }
  const auto refused = [&](const std::string& why) {
    const auto exit = todoke_in(other.path(), {"restore", backup().string()});
    EXPECT_EQ(exit.code, 1);
    EXPECT_THAT(exit.err, HasSubstr(why));
    EXPECT_FALSE(fs::exists(other.path() / "postgres"));
    for (const auto& entry : fs::directory_iterator(other.path()))
      EXPECT_FALSE(entry.path().filename().string().starts_with("postgres")) << entry.path();
  };
  const auto damaged = largest_file(backup() / "base");
  std::fstream(damaged, std::ios::in | std::ios::out | std::ios::binary).seekp(5'000) << "damage";
  refused("does not agree with its manifest");
  fs::remove(damaged);
  refused("does not agree with its manifest");
  fs::remove(backup() / "backup_manifest");
  refused("it has no file backup_manifest");
  const auto nothing = todoke_in(other.path(), {"restore", (aside.path() / "nothing").string()});
  EXPECT_THAT(nothing.err, HasSubstr("is no folder"));
}

}  // namespace
}  // namespace todoke::test
