// Commands beside a running node go by that node's database and configuration, and refuse to be led
// elsewhere.
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Environment = std::vector<std::string>;

constexpr const char* kTopic = "kukuri:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

// A node with an embedded database, and a second database in its cluster for nodes of their own folders.
class BesideANode : public testing::Test {
 protected:
  void SetUp() override {
    server.wait_ready();
    server.sql("CREATE DATABASE other");
  }

  [[nodiscard]] std::string url(const std::string& database, const std::string& role = "todoke") const {
    return "host=" + (server_folder.path() / "run").string() + " user=" + role + " dbname=" + database;
  }
  static Exit run(std::vector<std::string> words, const TempFolder& folder,
                  const Environment& environment = {}) {
    words.insert(words.begin(), todoke_binary());
    words.insert(words.end(), {"--data_dir", folder.path().string()});
    return run_command(words, environment);
  }
  static std::string beside(NodeProcess& node) {
    return "todoke: beside the node with pid " + std::to_string(node.process().pid());
  }

  TempFolder server_folder;
  TempFolder folder;
  TodokeUp server{server_folder.path()};
};

TEST_F(BesideANode, TheDatabaseOfItsFileIsUsedAndTheNodeIsNamed) {
  const auto file = (folder.path() / "node.toml").string();
  std::ofstream(file) << "[database]\nurl = \"" << url("other") << "\"\n";
  TodokeRun node("relay", folder.path(), {"--config", file});
  node.wait_ready();

  const auto enabled = run({"topic", "enable", kTopic}, folder);
  EXPECT_EQ(enabled.code, 0) << enabled.err;
  EXPECT_THAT(enabled.err, HasSubstr(beside(node)));
  EXPECT_THAT(run({"topic", "list"}, folder).out, HasSubstr(kTopic));
  EXPECT_THAT(run({"topic", "list"}, server_folder).out, Not(HasSubstr(kTopic))) << "another database";
  for (const auto* command : {"export", "stats", "audit", "migrate"}) {
    const auto exit = run({command}, folder);
    EXPECT_EQ(exit.code, 0) << command << ": " << exit.err;
    EXPECT_THAT(exit.err, HasSubstr(beside(node))) << command;
  }
  EXPECT_EQ(run({"consumers", "list"}, folder).code, 0);
  EXPECT_EQ(run({"retention", "plan"}, folder).code, 0);
  EXPECT_EQ(run({"config", "history"}, folder).code, 0);
  EXPECT_EQ(run({"orders", "stats"}, folder).code, 0);
  EXPECT_EQ(run({"import", "/dev/null"}, folder).code, 0);
  EXPECT_EQ(run_command({todoke_binary(), "psql", "--data_dir", folder.path().string(), "-Atc",
                         "SELECT current_database()"})
                .out,
            "other\n");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "postgres")) << "no database of its own was started";
}

TEST_F(BesideANode, ADatabaseThatOnlyTheNodesEnvironmentNamesIsAskedForAndNeverGuessed) {
  TodokeRun node("relay", folder.path(), {}, {"DATABASE_URL=" + url("other")});
  node.wait_ready();
  for (const auto* command : {"export", "stats", "migrate"}) {
    const auto exit = run({command}, folder);
    EXPECT_EQ(exit.code, 1) << command;
    EXPECT_THAT(exit.err, AllOf(HasSubstr("pid " + std::to_string(node.process().pid())),
                                HasSubstr("dbname=other"), HasSubstr("DATABASE_URL")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "postgres"));
  const auto told = run({"stats"}, folder, {"DATABASE_URL=" + url("other")});
  EXPECT_EQ(told.code, 0) << told.err;
}

TEST_F(BesideANode, AnotherDatabaseThanTheNodesIsRefused) {
  const Environment elsewhere{"DATABASE_URL=" + url("other")};
  for (const auto* command : {"export", "stats", "audit", "migrate"}) {
    const auto exit = run({command}, server_folder, elsewhere);
    EXPECT_EQ(exit.code, 1) << command;
    EXPECT_THAT(exit.err,
                AllOf(HasSubstr("DATABASE_URL names the database"), HasSubstr("dbname=other"),
                      HasSubstr("pid " + std::to_string(server.process().pid())), HasSubstr("--data_dir")));
  }
  EXPECT_THAT(run({"stats", "--database.url", url("other")}, server_folder).err,
              HasSubstr("--database.url names the database"));
  const auto same = run({"stats"}, server_folder, {"DATABASE_URL=" + url("todoke")});
  EXPECT_EQ(same.code, 0) << "the node's own database, named: " << same.err;
}

TEST_F(BesideANode, AFolderWithoutANodeHasTheDatabaseOfThisShell) {
  ASSERT_EQ(run({"migrate"}, folder, {"DATABASE_URL=" + url("other")}).code, 0);
  const auto exit = run({"stats"}, folder, {"DATABASE_URL=" + url("other")});
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_THAT(exit.err, Not(HasSubstr("beside")));
  EXPECT_THAT(run({"stats"}, folder).err, HasSubstr("no node runs on"));
}

TEST_F(BesideANode, SeveralNodesOnOneFolderAreToldApartByTheirDatabase) {
  TodokeRun node("none", server_folder.path(), {"--database.url", url("other")});
  node.wait_ready();
  EXPECT_THAT(run({"stats"}, server_folder).err, HasSubstr(beside(server)))
      << "the one with the embedded database";
  EXPECT_THAT(run({"stats", "--database.url", url("other")}, server_folder).err, HasSubstr(beside(node)));
}

}  // namespace
}  // namespace todoke::test
