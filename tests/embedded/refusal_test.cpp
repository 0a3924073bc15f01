// What a person has to mend comes as a UserError that says how.
#include <filesystem>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "node.hpp"

namespace todoke::embedded::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What start() complains about; fails the test when it is no UserError.
std::string complaint(Options config) {
  Node node(std::move(config));
  try {
    node.start();
  } catch (const UserError& error) {
    return error.what();
  }
  ADD_FAILURE() << "start() did not complain";
  node.begin_run();
  return {};
}

std::string complaint(const std::string& data_dir) {
  return complaint(Options{.data_dir = data_dir, .bin_dir = {}});
}

TEST(EmbeddedRefusal, AFolderInUseNamesThePidOfItsUser) {
  const TempFolder folder;
  Node first(folder.data_dir());
  first.serve();
  EXPECT_THAT(complaint(folder.data_dir()),
              AllOf(HasSubstr("in use by another todoke"), HasSubstr("pid " + std::to_string(::getpid()))));
  EXPECT_EQ(first.sql("SELECT 1"), "1");
  first.stop_well();
}

TEST(EmbeddedRefusal, AClusterOfAnotherVersionIsNotTouched) {
  const TempFolder folder;
  {
    Node node(folder.data_dir());
    node.serve();
    node.stop_well();
  }
  write_file(folder.cluster() + "/PG_VERSION", "14\n");
  EXPECT_THAT(complaint(folder.data_dir()),
              AllOf(HasSubstr("was made by Postgres 14"), HasSubstr("postgresql-14")));
}

TEST(EmbeddedRefusal, AFolderThatIsNoClusterIsNotTouched) {
  const TempFolder folder;
  std::filesystem::create_directories(folder.cluster());
  write_file(folder.cluster() + "/precious", "x");
  EXPECT_THAT(complaint(folder.data_dir()), HasSubstr("is no Postgres cluster"));
  EXPECT_TRUE(std::filesystem::exists(folder.cluster() + "/precious"));
}

TEST(EmbeddedRefusal, ADataFolderThatCannotBeMadeIsNamed) {
  const TempFolder folder;
  write_file(folder.path() + "/file", "x");
  EXPECT_THAT(complaint(folder.path() + "/file/data"), HasSubstr(folder.path() + "/file/data"));
}

TEST(EmbeddedRefusal, ADataFolderThatIsNotWritableIsNamed) {
  EXPECT_THAT(complaint("/proc/todoke"), HasSubstr("/proc/todoke"));
}

TEST(EmbeddedRefusal, ALinkInPlaceOfTheSocketFolderIsRefused) {
  const TempFolder folder;
  const auto data_dir = folder.path() + "/" + std::string(120, 'x');
  const auto sockets = layout_of(data_dir, ::geteuid()).sockets;
  std::filesystem::create_directory_symlink(folder.path(), sockets);
  EXPECT_THAT(complaint(data_dir), HasSubstr(sockets));
  std::filesystem::remove(sockets);
}

TEST(EmbeddedRefusal, AMissingUserIsNamedWithTheWayOut) {
  const TempFolder folder;
  Options config{.data_dir = folder.data_dir(), .user = "no-such-user", .bin_dir = {}};
  Node node(config);
  const auto valid = node.service().validate();
  ASSERT_EQ(valid.has_value(), ::geteuid() != 0) << "the key has no effect for anybody but root";
  if (valid) return;
  EXPECT_THAT(valid.error().message, AllOf(HasSubstr("no-such-user"), HasSubstr("database.embedded_user")));
  EXPECT_THAT(complaint(config), HasSubstr("no-such-user"));
}

TEST(EmbeddedRefusal, RootIsNoUserForPostgres) {
  const TempFolder folder;
  const Options config{.data_dir = folder.data_dir(), .user = "root", .bin_dir = {}};
  Node node(config);
  ASSERT_EQ(node.service().validate().has_value(), ::geteuid() != 0)
      << "only root starts Postgres as another user";
  if (::geteuid() == 0) {
    EXPECT_THAT(complaint(config), HasSubstr("database.embedded_user"));
  }
}

TEST(EmbeddedRefusal, AFolderWithoutProgramsIsNamed) {
  const TempFolder folder;
  EXPECT_THAT(complaint(Options{.data_dir = folder.data_dir(), .bin_dir = "/nonexistent/bin"}),
              AllOf(HasSubstr("database.embedded_bin_dir"), HasSubstr("/nonexistent/bin")));
  EXPECT_THAT(complaint(Options{.data_dir = folder.data_dir(), .bin_dir = folder.path()}),
              HasSubstr("database.embedded_bin_dir"));
}

TEST(EmbeddedBinDir, TheFolderThatWasGivenIsUsed) {
  const auto installed = installed_postgres();
  ASSERT_FALSE(installed.empty());
  const TempFolder folder;
  Node node(Options{.data_dir = folder.data_dir(), .bin_dir = installed.back().bin_dir});
  node.serve();
  EXPECT_EQ(node.sql("SELECT 1"), "1");
  node.stop_well();
}

}  // namespace
}  // namespace todoke::embedded::tests
