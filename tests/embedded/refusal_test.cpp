// What a person has to mend comes as a UserError that says how.
#include <filesystem>
#include <sys/stat.h>
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
  const auto sockets = layout_of(data_dir).sockets;
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
  EXPECT_THAT(valid.error().message, AllOf(HasSubstr("no-such-user"), HasSubstr("server.user")));
  EXPECT_THAT(complaint(config), HasSubstr("no-such-user"));
}

TEST(EmbeddedUser, PostgresIsNeverRootsNotEvenWhereTheNodeStaysRoot) {
  const TempFolder folder;
  Node node(Options{.data_dir = folder.data_dir(), .user = "root", .bin_dir = {}});
  node.serve();
  struct stat process{};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(node.service().pid().value())).c_str(), &process), 0);
  EXPECT_NE(process.st_uid, 0U);
  node.stop_well();
}

TEST(EmbeddedUser, TheOwnerOfTheClusterHasItAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has the choice";
  const TempFolder folder;
  std::filesystem::create_directories(folder.cluster());
  const auto nobody = user_for("nobody", folder.data_dir());
  ASSERT_TRUE(nobody) << nobody.error().message;
  ASSERT_EQ(::chown(folder.cluster().c_str(), nobody->uid, nobody->identity->gid), 0);
  EXPECT_EQ(user_for("", folder.data_dir())->name, "nobody");
  EXPECT_EQ(user_for("root", folder.data_dir())->name, "nobody");
  EXPECT_EQ(user_for("postgres", folder.data_dir())->name, "postgres") << "who is named is named";
}

TEST(EmbeddedUser, WhatRootLeftBehindIsTakenOverAndWhatIsOfOthersIsNot) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give anything away";
  const TempFolder folder;
  const auto layout = layout_of(folder.data_dir());
  const auto user = user_for("postgres", folder.data_dir());
  ASSERT_TRUE(user) << user.error().message;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0711));
  write_file(folder.path() + "/outside", "root's");
  std::filesystem::create_directories(folder.data_dir() + "/instances");
  write_file(folder.data_dir() + "/instances/1", "x");
  std::filesystem::create_symlink(folder.path() + "/outside", folder.data_dir() + "/link");
  std::filesystem::create_hard_link(folder.path() + "/outside", folder.data_dir() + "/name");
  take_over(layout, *user);
  const auto owner = [](const std::string& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 ? info.st_uid : 12345;
  };
  EXPECT_EQ(owner(folder.data_dir()), user->uid);
  EXPECT_EQ(owner(folder.data_dir() + "/instances/1"), user->uid);
  EXPECT_EQ(owner(folder.path() + "/outside"), 0U);
}

TEST(EmbeddedUser, AFolderOfAThirdUserOrOneThatCanNotBeReachedIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TempFolder folder;
  const auto layout = layout_of(folder.data_dir());
  const auto user = user_for("postgres", folder.data_dir());
  const auto why = [&] {
    try {
      take_over(layout, *user);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0700));
  EXPECT_THAT(why(), AllOf(HasSubstr("can't reach"), HasSubstr(folder.data_dir())));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0711));
  const auto third = user_for("nobody", {});
  ASSERT_EQ(::chown(folder.data_dir().c_str(), third->uid, third->identity->gid), 0);
  EXPECT_THAT(why(), AllOf(HasSubstr("server.user"), HasSubstr(folder.data_dir())));
}

std::string refusal_to_take_over(const std::string& data_dir) {
  const auto user = user_for("postgres", {});
  try {
    take_over(layout_of(data_dir), *user);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST(EmbeddedUser, AFolderOfRootsAtTheTopOfTheSystemIsNotGivenAwayUnlessItIsANodes) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give anything away";
  std::string top = "/todoke-test-XXXXXX";
  ASSERT_NE(::mkdtemp(top.data()), nullptr);
  std::filesystem::permissions(top, std::filesystem::perms(0711));
  const auto owner = [&top] {
    struct stat info{};
    return ::stat(top.c_str(), &info) == 0 ? info.st_uid : 12345;
  };
  write_file(top + "/passwd", "what the system lives by");
  EXPECT_THAT(refusal_to_take_over(top), HasSubstr("holds other things"));
  EXPECT_EQ(owner(), 0U);
  write_file(top + "/todoke.lock", "1");
  EXPECT_EQ(refusal_to_take_over(top), "");
  EXPECT_NE(owner(), 0U);
  std::filesystem::remove_all(top);
}

TEST(EmbeddedUser, AFolderOfRootsThatSomebodyElsesLinkLeadsToIsNotGivenAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give anything away";
  const TempFolder folder;
  const auto third = user_for("nobody", {});
  ASSERT_TRUE(third) << third.error().message;
  const auto target = folder.path() + "/roots";
  std::filesystem::create_directory(target);
  write_file(target + "/postgres", "looks like a node's");
  const auto link = folder.path() + "/link";
  std::filesystem::create_directory_symlink(target, link);
  ASSERT_EQ(::lchown(link.c_str(), third->uid, third->identity->gid), 0);
  EXPECT_THAT(refusal_to_take_over(link), HasSubstr("does not belong to root"));
  struct stat after{};
  ASSERT_EQ(::stat(target.c_str(), &after), 0);
  EXPECT_EQ(after.st_uid, 0U);
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
