#include "app/instance_file.hpp"

#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/keys.hpp"

namespace todoke::app {
namespace {

using testing::IsEmpty;

class InstanceFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "instance-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~InstanceFileTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(folder_ / "instances");
    std::ofstream(folder_ / "instances" / name) << text;
  }
  [[nodiscard]] std::filesystem::path own_file() const {
    return folder_ / "instances" / std::to_string(getpid());
  }

  std::filesystem::path folder_;
};

TEST_F(InstanceFileTest, ARunningNodeIsFoundWithItsNotesUntilItStops) {
  {
    const InstanceFile file(folder_, {{"roles", "relay"}, {"public", "127.0.0.1:1"}});
    const auto running = running_instances(folder_);
    ASSERT_EQ(running.size(), 1U);
    EXPECT_EQ(running[0].pid, getpid());
    EXPECT_EQ(running[0].notes.at("roles"), "relay");
    EXPECT_EQ(running[0].notes.at("public"), "127.0.0.1:1");
  }
  EXPECT_THAT(running_instances(folder_), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(own_file()));
}

TEST_F(InstanceFileTest, AFileOfAnotherProcessWithTheSamePidIsRemoved) {
  write(std::to_string(getpid()), "roles=relay\nprocess_start=1\n");
  EXPECT_THAT(running_instances(folder_), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(own_file()));
}

TEST_F(InstanceFileTest, AFileThatIsNoInstanceIsLeftAlone) {
  write("readme", "roles=relay\n");
  EXPECT_THAT(running_instances(folder_), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(folder_ / "instances" / "readme"));
}

TEST_F(InstanceFileTest, ALinkInPlaceOfTheFolderIsRefused) {
  std::filesystem::create_directory(folder_ / "elsewhere");
  std::filesystem::create_directory_symlink(folder_ / "elsewhere", folder_ / "instances");
  EXPECT_THROW(InstanceFile(folder_, {}), UserError);
}

TEST_F(InstanceFileTest, NoFolderMeansNoNode) {
  EXPECT_THAT(running_instances(folder_ / "nothing"), IsEmpty());
}

Config of_a_node() {
  Config config(schema());
  config.load_toml("[relay]\nname = \"from the file\"\n", "node.toml");
  config.load_environment(std::vector<std::string>{"TODOKE_LOG_LEVEL=debug"});
  config.set_flag("server.listen", "127.0.0.1:7");
  config.set_flag("database.url", "postgresql://secret");
  return config;
}

TEST_F(InstanceFileTest, TheNotesHoldFlagsAndEnvironmentAndNoSecret) {
  const auto notes = settings_notes(of_a_node());
  EXPECT_EQ(notes.at("environment.log.level"), "debug");
  EXPECT_EQ(notes.at("flag.server.listen"), "127.0.0.1:7");
  EXPECT_FALSE(notes.contains("flag.relay.name"));
  for (const auto& [name, value] : notes) EXPECT_EQ(value.find("secret"), std::string::npos) << name;
}

TEST_F(InstanceFileTest, TheNotesMakeTheConfigurationOfTheNextStart) {
  Instance instance{1, settings_notes(of_a_node())};
  instance.notes.erase("config_file");  // there is none on disk
  instance.notes.emplace("flag.key.of.another.version", "1");
  const auto config = config_of(instance, schema());
  EXPECT_EQ(config.get(keys::kLogLevel), "debug");
  EXPECT_TRUE(config.is_pinned("server.listen"));
  EXPECT_TRUE(config.is_default("relay.name"));
}

TEST_F(InstanceFileTest, AKeyIsPinnedByTheNodeThatHasItAsFlagOrVariable) {
  const std::vector<Instance> nodes{{7, {{"flag.relay.name", "a"}}},
                                    {8, {{"environment.log.level", "debug"}}}};
  EXPECT_EQ(pinned_by(nodes, "relay.name"), "--relay.name of the node with pid 7");
  EXPECT_EQ(pinned_by(nodes, "log.level"), "TODOKE_LOG_LEVEL of the node with pid 8");
  EXPECT_EQ(pinned_by(nodes, "server.listen"), "");
}

}  // namespace
}  // namespace todoke::app
