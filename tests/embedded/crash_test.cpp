// Everything that can die, dies by SIGKILL here; what was committed is there afterwards.
#include <array>
#include <fcntl.h>
#include <filesystem>
#include <signal.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/fd.hpp"
#include "embedded/cluster.hpp"
#include "embedded/leftovers.hpp"
#include "node.hpp"

namespace todoke::embedded::tests {
namespace {

using testing::HasSubstr;

bool answers(Node& node) {
  try {
    return node.sql("SELECT 1") == "1";
  } catch (const std::runtime_error&) {
    return false;
  }
}

// A process of its own that runs the service.
class Host {
 public:
  explicit Host(const std::string& data_dir) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    reading_ = Fd(ends[0]);
    const Fd writing(ends[1]);
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      ::dup2(writing.get(), STDOUT_FILENO);
      ::execl(EMBEDDED_HOST, EMBEDDED_HOST, data_dir.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Host() { kill(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void wait_until_ready() {
    std::array<char, 16> text{};
    if (::read(reading_.get(), text.data(), text.size()) <= 0) throw std::runtime_error("the host ended");
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  Fd reading_;
  pid_t pid_ = -1;
};

TEST(EmbeddedCrash, ADeadPostmasterEndsRunAndStartBringsItBackWithTheData) {
  const TempFolder folder;
  Node node(folder.data_dir());
  node.serve();
  node.sql("CREATE TABLE kept AS SELECT 42 AS answer");
  ASSERT_EQ(::kill(*node.service().pid(), SIGKILL), 0);
  const auto error = node.end();
  ASSERT_TRUE(error);
  EXPECT_THAT(describe(error), HasSubstr("signal 9"));

  node.serve();
  EXPECT_EQ(node.sql("SELECT answer FROM kept"), "42");
  node.stop_well();
}

TEST(EmbeddedCrash, ABusyBackendThatOutlivesItsPostmasterDoesNotBlockTheNextStart) {
  const TempFolder folder;
  Node node(folder.data_dir());
  node.serve();
  // Busy in a function, a backend does not look whether its postmaster lives.
  const pid_t client = ::fork();
  ASSERT_GE(client, 0);
  if (client == 0) {
    ::execlp("psql", "psql", "-X", "-q", node.service().connection_string().c_str(), "-c",
             "SELECT count(*) FROM generate_series(1, 100000000000) a", nullptr);
    ::_exit(127);
  }
  wait_until("the statement to run", [&node] {
    return node.sql(
               "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series%' AND state = "
               "'active' "
               "AND pid <> pg_backend_pid()") == "1";
  });
  ASSERT_EQ(::kill(*node.service().pid(), SIGKILL), 0);
  EXPECT_TRUE(node.end());
  node.serve();
  EXPECT_EQ(node.sql("SELECT 1"), "1");
  node.stop_well();
  ::kill(client, SIGKILL);
  ::waitpid(client, nullptr, 0);
}

TEST(EmbeddedCrash, ADeadBackendIsRecoveredByPostgresItselfAndTheServiceGoesOn) {
  const TempFolder folder;
  Node node(folder.data_dir());
  node.serve();
  node.sql("CREATE TABLE kept AS SELECT 42 AS answer");
  const auto postmaster = node.service().pid();
  // The checkpointer is a backend that is always there; its death makes Postgres restart all of them.
  const auto victim =
      std::stoi(node.sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"));
  ASSERT_EQ(::kill(victim, SIGKILL), 0);
  wait_until("its end", [victim] { return ::kill(victim, 0) != 0; });
  node.until([&node] { return answers(node); });
  EXPECT_EQ(node.sql("SELECT answer FROM kept"), "42");
  EXPECT_TRUE(node.running());
  EXPECT_EQ(node.service().pid(), postmaster);
  node.stop_well();
}

TEST(EmbeddedCrash, WhenTodokeIsKilledPostgresStopsByItself) {
  const TempFolder folder;
  Host host(folder.data_dir());
  host.wait_until_ready();
  EXPECT_FALSE(processes_of_cluster(folder.cluster()).empty());
  host.kill();
  wait_until("the end of the server", [&folder] { return processes_of_cluster(folder.cluster()).empty(); });
}

TEST(EmbeddedCrash, WhenTodokeIsKilledTheNextOneStartsAtOnceWithTheData) {
  const TempFolder folder;
  Host host(folder.data_dir());
  host.wait_until_ready();
  Node node(folder.data_dir());
  node.sql("CREATE TABLE kept AS SELECT 42 AS answer");
  host.kill();
  node.serve();
  EXPECT_EQ(node.sql("SELECT answer FROM kept"), "42");
  node.stop_well();
  EXPECT_TRUE(processes_of_cluster(folder.cluster()).empty());
}

TEST(EmbeddedCrash, WhenTodokeIsKilledDuringInitdbTheNextOneBeginsAnew) {
  const TempFolder folder;
  {
    Host host(folder.data_dir());
    wait_until("a half-made cluster", [&folder] { return has_half_made(folder.data_dir()); });
  }
  ASSERT_FALSE(std::filesystem::exists(folder.cluster()));
  Node node(folder.data_dir());
  node.serve();
  EXPECT_FALSE(has_half_made(folder.data_dir()));
  EXPECT_EQ(node.sql("SHOW data_checksums"), "on");
  node.stop_well();
}

// Starts a program as the user of the cluster, as an earlier todoke would have.
pid_t run_as_owner(const std::vector<std::string>& argv) {
  const auto user = user_for("postgres");
  if (!user) throw std::runtime_error(user.error().message);
  const Fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  return spawn_program({.argv = argv, .identity = user->identity, .output_fd = null.get()});
}

void make_cluster_and_stop(const std::string& data_dir) {
  Node node(data_dir);
  node.serve();
  node.sql("CREATE TABLE kept AS SELECT 42 AS answer");
  node.stop_well();
}

TEST(EmbeddedCrash, AnOrphanedPostmasterIsStoppedFirst) {
  const TempFolder folder;
  make_cluster_and_stop(folder.data_dir());
  const auto binaries = installed_postgres();
  ASSERT_FALSE(binaries.empty());
  const auto orphan =
      run_as_owner(postgres_command(binaries.back(), folder.cluster(), folder.data_dir() + "/run"));
  wait_until("the orphan", [&] { return postmaster_is_ready(folder.cluster(), orphan); });

  Node node(folder.data_dir());
  node.serve();
  int status = 0;
  EXPECT_EQ(::waitpid(orphan, &status, 0), orphan);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it was not shut down in order";
  EXPECT_EQ(node.sql("SELECT answer FROM kept"), "42");
  node.stop_well();
}

TEST(EmbeddedCrash, LockFilesWhosePidBelongsToAnotherProgramDoNotStopTheStart) {
  const TempFolder folder;
  make_cluster_and_stop(folder.data_dir());
  const auto other = run_as_owner({"/bin/sleep", "1000"});
  const auto lock = std::to_string(other) + "\n" + folder.cluster() + "\n1700000000\n5432\n";
  write_file(folder.cluster() + "/postmaster.pid", lock);
  write_file(folder.data_dir() + "/run/.s.PGSQL.5432.lock", lock);

  Node node(folder.data_dir());
  node.serve();
  EXPECT_EQ(node.sql("SELECT answer FROM kept"), "42");
  EXPECT_EQ(::kill(other, 0), 0) << "a program that is no Postgres was ended";
  node.stop_well();
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

}  // namespace
}  // namespace todoke::embedded::tests
