// Starting, stopping and what a cluster is like.
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <signal.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.hpp"
#include "embedded/leftovers.hpp"
#include "node.hpp"

namespace todoke::embedded::tests {
namespace {

using testing::HasSubstr;

mode_t mode_of(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) throw std::runtime_error("stat " + path);
  return info.st_mode & 07777;
}

uid_t uid_of_process(pid_t pid) {
  struct stat info{};
  if (::stat(("/proc/" + std::to_string(pid)).c_str(), &info) != 0)
    throw std::runtime_error("stat of a process");
  return info.st_uid;
}

// The sockets in /proc/net/tcp and tcp6 that `pid` holds.
int tcp_sockets_of(pid_t pid) {
  std::set<std::string> inodes;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream stream(table);
    for (std::string line; std::getline(stream, line);) {
      std::istringstream words(line);
      std::string word;
      for (int i = 0; i < 10 && words >> word; ++i) {
      }
      inodes.insert("socket:[" + word + "]");
    }
  }
  int held = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    if (inodes.contains(std::filesystem::read_symlink(entry.path(), gone).string())) ++held;
  }
  return held;
}

TEST(EmbeddedStart, AFreshFolderBecomesADurablePrivateDatabase) {
  const TempFolder folder;
  Node node(folder.data_dir());
  ASSERT_TRUE(node.service().validate());
  node.serve();

  EXPECT_EQ(node.sql("SELECT current_user || '@' || current_database()"), "todoke@todoke");
  EXPECT_EQ(node.sql("SHOW data_checksums"), "on");
  EXPECT_EQ(node.sql("SHOW fsync"), "on");
  EXPECT_EQ(node.sql("SHOW server_encoding"), "UTF8");
  EXPECT_EQ(node.sql("SHOW lc_collate"), "C.UTF-8");
  EXPECT_EQ(node.sql("SHOW max_connections"), "200");
  EXPECT_EQ(node.sql("SHOW password_encryption"), "scram-sha-256");
  EXPECT_EQ(node.sql("SHOW listen_addresses"), "");

  const auto pid = node.service().pid();
  ASSERT_TRUE(pid);
  EXPECT_EQ(tcp_sockets_of(*pid), 0);
  EXPECT_NE(uid_of_process(*pid), 0u);
  EXPECT_EQ(mode_of(folder.cluster()), 0700u);
  EXPECT_EQ(mode_of(folder.data_dir() + "/run"), 0700u);
  EXPECT_EQ(mode_of(folder.data_dir()) & 066, 0u);
  node.stop_well();
}

TEST(EmbeddedStart, ARoleWithoutTheMapNeedsAPassword) {
  const TempFolder folder;
  Node node(folder.data_dir());
  node.serve();
  node.sql("CREATE ROLE guest LOGIN");
  auto as_guest = node.service().connection_string();
  as_guest.replace(as_guest.find("user=todoke"), 11, "user=guest passfile=/nonexistent");
  try {
    run_sql(as_guest, "SELECT 1");
    FAIL() << "guest came in without a password";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("password"));
  }
  node.stop_well();
}

TEST(EmbeddedStart, ASecondStartFindsTheDataAndTheOperatorsSettings) {
  const TempFolder folder;
  {
    Node node(folder.data_dir());
    node.serve();
    node.sql("CREATE TABLE kept AS SELECT 42 AS answer");
    node.stop_well();
  }
  std::ofstream(folder.cluster() + "/postgresql.conf", std::ios::app) << "work_mem = 33MB\n";
  Node node(folder.data_dir());
  node.serve();
  EXPECT_EQ(node.sql("SELECT answer FROM kept"), "42");
  EXPECT_EQ(node.sql("SHOW work_mem"), "33MB");
  EXPECT_EQ(node.sql("SHOW checkpoint_timeout"), "15min");
  node.stop_well();
}

TEST(EmbeddedStart, StoppingLeavesNoProcessAndNoPidFile) {
  const TempFolder folder;
  Node node(folder.data_dir());
  node.serve();
  EXPECT_FALSE(processes_of_cluster(folder.cluster()).empty());
  node.stop_well();
  EXPECT_TRUE(processes_of_cluster(folder.cluster()).empty());
  EXPECT_FALSE(std::filesystem::exists(folder.cluster() + "/postmaster.pid"));
  EXPECT_FALSE(node.service().pid());
  // The folder is free again.
  Node next(folder.data_dir());
  next.serve();
  next.stop_well();
}

TEST(EmbeddedStart, APostmasterThatDoesNotReactIsKilled) {
  const TempFolder folder;
  Node node(folder.data_dir());
  node.serve();
  node.sql("CREATE TABLE kept AS SELECT 1 AS one");
  ASSERT_EQ(::kill(*node.service().pid(), SIGSTOP), 0);
  node.stop_well();
  wait_until("the end of the server", [&folder] { return processes_of_cluster(folder.cluster()).empty(); });
  Node next(folder.data_dir());
  next.serve();
  EXPECT_EQ(next.sql("SELECT one FROM kept"), "1");
  next.stop_well();
}

TEST(EmbeddedStart, AStopDuringInitdbEndsTheStartAndTheNextOneWorks) {
  const TempFolder folder;
  {
    Node node(folder.data_dir());
    node.begin_start();
    node.until([&folder] { return has_half_made(folder.data_dir()); });
    node.stop();
    EXPECT_TRUE(node.end()) << "start() must throw";
    EXPECT_FALSE(std::filesystem::exists(folder.cluster()));
  }
  Node node(folder.data_dir());
  node.serve();
  EXPECT_FALSE(has_half_made(folder.data_dir()));
  EXPECT_EQ(node.sql("SELECT 1"), "1");
  node.stop_well();
}

TEST(EmbeddedStart, ALongPathGetsItsSocketInAPrivateFolderElsewhere) {
  const TempFolder folder;
  const auto data_dir = folder.path() + "/" + std::string(120, 'x');
  Node node(data_dir);
  const auto sockets = node.service().layout().sockets;
  ASSERT_TRUE(sockets.starts_with("/tmp/todoke-")) << sockets;
  node.serve();
  EXPECT_EQ(node.sql("SELECT 1"), "1");
  EXPECT_EQ(mode_of(sockets), 0700u);
  node.stop_well();
  std::filesystem::remove_all(sockets);
}

// As root, Postgres runs as a user who can't enter the folder above.
TEST(EmbeddedStart, AFolderThatOnlyItsOwnerCanEnterWorksAllTheSame) {
  const TempFolder folder(0700);
  for (const char* value : {"1", "2"}) {
    Node node(folder.data_dir());
    node.serve();
    node.sql("CREATE TABLE IF NOT EXISTS kept (n int)");
    node.sql("INSERT INTO kept VALUES (1)");
    EXPECT_EQ(node.sql("SELECT count(*) FROM kept"), value);
    node.stop_well();
  }
}

TEST(EmbeddedStart, WhatPostgresLogsIsLogged) {
  std::mutex mutex;
  std::string logged;
  const log::Capture capture([&](std::string_view line) {
    const std::lock_guard lock(mutex);
    logged.append(line).append("\n");
  });
  const TempFolder folder;
  Node node(folder.data_dir());
  node.serve();
  EXPECT_THROW(node.sql("SELECT * FROM nowhere_to_be_found"), std::runtime_error);
  wait_until("the line in the log", [&] {
    const std::lock_guard lock(mutex);
    return logged.find("error   postgres: relation \"nowhere_to_be_found\" does not exist") !=
           std::string::npos;
  });
  node.stop_well();
}

}  // namespace
}  // namespace todoke::embedded::tests
