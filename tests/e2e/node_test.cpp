// A node from outside: start, stop, and what a kill leaves behind.
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <pwd.h>
#include <regex>
#include <string>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

struct Node : testing::Test {
  TempFolder folder;
};

pid_t postmaster_of(const std::filesystem::path& data_dir) {
  std::ifstream file(data_dir / "postgres/postmaster.pid");
  pid_t pid = 0;
  file >> pid;
  return pid;
}

void wait_until_healthy(TodokeUp& node) {
  const auto url = "http://" + node.internal_address() + "/healthz";
  wait_until("a healthy node", [&] { return http_get(url).body.starts_with("{\"status\":\"up\""); });
}

TEST_F(Node, SaysWhatRunsAndWhatToOpenAndServesIt) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto text = node.process().out();
  EXPECT_THAT(text, HasSubstr(folder.path().string()));
  EXPECT_THAT(text, HasSubstr("curl"));

  const auto outside = http_get("http://" + node.public_address() + "/healthz");
  EXPECT_EQ(outside.status, 200);
  EXPECT_EQ(outside.body, "{\"status\":\"up\"}\n");
  EXPECT_EQ(http_get("http://" + node.public_address() + "/metrics").status, 404) << "metrics are internal";
  EXPECT_EQ(http_get("http://" + node.public_address() + "/").status, 200);

  const auto inside = http_get("http://" + node.internal_address() + "/healthz");
  EXPECT_THAT(inside.body, HasSubstr(R"({"name":"database","state":"up","essential":true})"));
  EXPECT_THAT(inside.body, HasSubstr(R"("name":"postgres","state":"up")"));
  const auto metrics = http_get("http://" + node.internal_address() + "/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.body, HasSubstr("todoke_pg_pool_connections"));
  EXPECT_THAT(metrics.body, HasSubstr("todoke_build_info"));
}

// What differs from one start to the next becomes the same: the data folder, ports, versions and times.
std::string without_values(const std::string& text, const std::string& data_dir) {
  const auto folderless = std::regex_replace(text, std::regex(data_dir), "DATA");
  return std::regex_replace(folderless, std::regex("[0-9]+"), "N");
}

TEST_F(Node, PrintsWhatTheReadmeShows) {
  std::ifstream file(std::string(TODOKE_DOCS) + "/../README.md");
  const std::string readme(std::istreambuf_iterator<char>(file), {});
  const auto begins = readme.find("```\ntodoke ") + 4;
  const auto shown = readme.substr(begins, readme.find("```", begins) - begins);
  TodokeUp node(folder.path());
  node.wait_ready();
  EXPECT_EQ(without_values(node.process().out(), folder.path()),
            without_values(shown, "/home/you/.local/share/todoke"));
}

TEST_F(Node, SendsOrdersUnlessItIsToldNotTo) {
  const auto post = [](const std::string& address, const std::string& key) {
    return run_command({"curl", "-sf", "-H", "Content-Type: application/json", "-H",
                        "Idempotency-Key: " + key, "-d",
                        R"({"instrument":"BTC-USD","side":"BUY","qty":1,"idempotency_key":")" + key + R"("})",
                        "http://" + address + "/do/order"});
  };
  {
    TodokeUp node(folder.path());
    node.wait_ready();
    ASSERT_EQ(post(node.public_address(), "up-key-1").code, 0);
    const auto settled = http_get("http://" + node.public_address() + "/do/order/up-key-1?wait=30s");
    EXPECT_THAT(settled.body, HasSubstr(R"("status":"succeeded")"));
    node.process().kill(SIGTERM);
    EXPECT_EQ(node.process().wait().code, 0);
  }
  TodokeUp idle(folder.path(), {}, {"OUTBOX_ENABLED=false"});
  idle.wait_ready();
  ASSERT_EQ(post(idle.public_address(), "up-key-2").code, 0);
  EXPECT_THAT(http_get("http://" + idle.internal_address() + "/healthz").body, HasSubstr("no worker runs"));
  EXPECT_EQ(idle.sql("SELECT status, claim_no FROM outbox_orders WHERE idempotency_key = 'up-key-2'"),
            "pending|0");
}

TEST_F(Node, StopsCleanlyOnEitherSignalAndFindsItsDataAgain) {
  for (const int signal : {SIGTERM, SIGINT}) {
    TodokeUp node(folder.path());
    node.wait_ready();
    node.sql("create table if not exists kept (n int); insert into kept values (1)");
    node.process().kill(signal);
    const auto exit = node.process().wait();
    EXPECT_EQ(exit.code, 0) << exit.err;
    EXPECT_TRUE(processes_in(folder.path()).empty()) << "the database stops with the node";
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "postgres/postmaster.pid"));
  }
  TodokeUp node(folder.path());
  node.wait_ready();
  EXPECT_EQ(node.sql("select count(*) from kept"), "2");
}

TEST_F(Node, TheEmbeddedDatabaseIsDurableAndHasNoTcpPort) {
  TodokeUp node(folder.path());
  node.wait_ready();
  EXPECT_EQ(node.sql("show fsync"), "on");
  EXPECT_EQ(node.sql("show data_checksums"), "on");
  EXPECT_EQ(node.sql("show synchronous_commit"), "on");
  EXPECT_EQ(node.sql("show listen_addresses"), "");
}

TEST_F(Node, PostgresNeverRunsAsRoot) {
  TodokeUp node(folder.path());
  node.wait_ready();
  for (const auto pid : processes_in(folder.path())) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("Uid:")) {
        EXPECT_EQ(line.find("\t0"), std::string::npos) << line;
      }
    }
  }
}

TEST_F(Node, AKilledNodeLeavesNoOrphanAndTheNextStartHasEverything) {
  for (int round = 0; round < 2; ++round) {
    TodokeUp node(folder.path());
    node.wait_ready();
    node.sql("create table if not exists kept (n int); insert into kept values (1)");
    node.process().kill(SIGKILL);
    node.process().wait();
    if (round == 0)
      wait_until_none_in(folder.path());  // the second round starts while the old server may still stop
  }
  TodokeUp node(folder.path());
  node.wait_ready();
  EXPECT_EQ(node.sql("select count(*) from kept"), "2");
}

TEST_F(Node, AKilledNodeThatItsParentHasNotLookedAfterIsGoneAllTheSame) {
  TodokeUp killed(folder.path());
  killed.wait_ready();
  killed.process().kill(SIGKILL);
  wait_until_none_in(folder.path());
  TodokeUp next(folder.path());
  next.wait_ready();
  EXPECT_EQ(next.sql("select 1"), "1");
}

TEST_F(Node, AKilledPostmasterComesBackByItself) {
  TodokeUp node(folder.path());
  node.wait_ready();
  node.sql("create table kept (n int); insert into kept values (1)");
  const auto before = postmaster_of(folder.path());
  ASSERT_EQ(kill(before, SIGKILL), 0);
  wait_until("another postmaster", [&] {
    const auto now = postmaster_of(folder.path());
    return now != 0 && now != before;
  });
  wait_until_healthy(node);
  EXPECT_EQ(node.sql("select count(*) from kept"), "1");
  EXPECT_THAT(http_get("http://" + node.internal_address() + "/metrics").body,
              HasSubstr("todoke_service_restarts_total{service=\"postgres\"} 1"));
}

TEST_F(Node, ADatabaseThatHangsIsNotTakenForOneThatDoesNotRun) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto postmaster = postmaster_of(folder.path());
  ASSERT_EQ(kill(postmaster, SIGSTOP), 0);
  const auto halt = run_command({todoke_binary(), "orders", "halt", "--data_dir", folder.path().string()});
  const auto doctor = run_command({todoke_binary(), "doctor", "--data_dir", folder.path().string()});
  // It may have ended already: the kernel tells it that the node is gone.
  EXPECT_TRUE(kill(postmaster, SIGCONT) == 0 || errno == ESRCH);
  EXPECT_EQ(halt.code, 1);
  EXPECT_THAT(halt.err, HasSubstr("runs and gives no answer"));
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("gives no answer"));
}

TEST_F(Node, AKilledBackendIsNoConcernOfTheNode) {
  TodokeUp node(folder.path());
  node.wait_ready();
  node.sql("create table kept (n int); insert into kept values (1)");
  const auto before = postmaster_of(folder.path());
  const auto backend =
      std::stoi(node.sql("select pid from pg_stat_activity where application_name like 'todoke%' and pid <> "
                         "pg_backend_pid() limit 1"));
  ASSERT_EQ(kill(backend, SIGKILL), 0);
  wait_until("crash recovery", [&] {
    try {
      return node.sql("select count(*) from kept") == "1";
    } catch (const std::runtime_error&) {
      return false;
    }
  });
  wait_until_healthy(node);
  EXPECT_EQ(postmaster_of(folder.path()), before);
}

TEST_F(Node, ADeadDatabaseMakesTheNodeUnhealthyUntilItIsBack) {
  TodokeUp database(folder.path());
  database.wait_ready();
  const TempFolder other;
  TodokeUp node(other.path(), {},
                {"DATABASE_URL=host=" + (folder.path() / "run").string() + " user=todoke dbname=todoke"});
  node.wait_ready();
  EXPECT_FALSE(std::filesystem::exists(other.path() / "postgres"))
      << "with a configured database there is no embedded one";
  database.process().kill(SIGTERM);
  database.process().wait();
  const auto url = "http://" + node.public_address() + "/healthz";
  wait_until("503", [&] { return http_get(url).status == 503; });
  EXPECT_EQ(http_get(url).body, "{\"status\":\"down\"}\n") << "no details for strangers";
  TodokeUp again(folder.path());
  again.wait_ready();
  wait_until("200", [&] { return http_get(url).status == 200; });
}

TEST_F(Node, AStopThatHangsIsCutAndDoesNotEndWithZero) {
  // Without time for requests and orders the limit is shorter than the one for a database that hangs.
  TodokeUp node(folder.path(), {"--server.drain_timeout", "0"}, {"OUTBOX_ENABLED=false"});
  node.wait_ready();
  const auto postmaster = postmaster_of(folder.path());
  ASSERT_EQ(kill(postmaster, SIGSTOP), 0);
  node.process().kill(SIGTERM);
  const auto exit = node.process().wait();
  // It may have ended already: the kernel tells it that the node is gone.
  EXPECT_TRUE(kill(postmaster, SIGCONT) == 0 || errno == ESRCH);
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr("stopping took too long, cutting what is left"));
  wait_until_none_in(folder.path());
}

TEST_F(Node, ASecondNodeOnTheSameFolderIsRefusedAndNamesTheFirst) {
  TodokeUp first(folder.path());
  first.wait_ready();
  TodokeUp second(folder.path());
  const auto exit = second.process().wait();
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr(std::to_string(first.process().pid())));
  EXPECT_EQ(first.sql("select 1"), "1") << "the first one is not disturbed";
}

TEST_F(Node, APortInUseIsRefusedBeforeTheDatabaseIsTouched) {
  TodokeUp first(folder.path());
  first.wait_ready();
  const TempFolder other;
  TodokeUp second(other.path(), {"--server.listen", first.public_address()});
  const auto exit = second.process().wait();
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr(first.public_address()));
  EXPECT_FALSE(std::filesystem::exists(other.path() / "postgres"));
  const auto doctor = run_command({todoke_binary(), "doctor", "--data_dir", other.path().string(),
                                   "--server.listen", first.public_address()});
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("FAIL  configuration  can't listen on " + first.public_address()));
}

TEST_F(Node, SeveralProcessesOnOneFreshDatabaseMigrateItOnce) {
  TodokeUp database(folder.path());
  database.wait_ready();
  database.sql("create database fresh");
  const auto host = "host=" + (folder.path() / "run").string();
  const auto url = "DATABASE_URL=" + host + " user=todoke_node dbname=fresh";
  const auto owner = "TODOKE_DATABASE_OWNER_URL=" + host + " user=todoke dbname=fresh";
  std::vector<std::unique_ptr<TempFolder>> folders;
  std::vector<std::unique_ptr<TodokeUp>> nodes;
  for (int i = 0; i < 4; ++i) {
    folders.push_back(std::make_unique<TempFolder>());
    nodes.push_back(std::make_unique<TodokeUp>(folders.back()->path(), std::vector<std::string>{},
                                               std::vector<std::string>{url, owner}));
  }
  for (auto& node : nodes) node->wait_ready();
  EXPECT_EQ(nodes[0]->sql("select count(*) = max(version) from todoke.schema_migrations"), "t");
}

TEST_F(Node, DoctorSaysWhatOneRoleForTheDatabaseCosts) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto doctor = [&](const std::vector<std::string>& environment) {
    return run_command({todoke_binary(), "doctor", "--data_dir", folder.path().string()}, environment).out;
  };
  EXPECT_THAT(doctor({}),
              HasSubstr("ok    database role  todoke_node can change neither the schema nor the audit\n"));
  const auto one = "DATABASE_URL=host=" + (folder.path() / "run").string() + " user=todoke dbname=todoke";
  EXPECT_THAT(doctor({one}),
              HasSubstr("warn  database role  todoke owns the tables: a flaw in the node could "
                        "change the schema and erase the audit"));
}

TEST_F(Node, PsqlTakesTheFolderAsAnOption) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto exit =
      run_command({todoke_binary(), "psql", "--data_dir", folder.path().string(), "-Atc", "select 41 + 1"});
  EXPECT_EQ(exit.out, "42\n") << exit.err;
}

TEST_F(Node, ACleanStopLogsNoError) {
  TodokeUp node(folder.path());
  node.wait_ready();
  node.process().kill(SIGTERM);
  const auto lines = node.process().wait().err;
  EXPECT_THAT(lines, testing::Not(HasSubstr("\"level\":\"error\"")));
  EXPECT_THAT(lines, testing::Not(HasSubstr("terminating connection")));
}

TEST_F(Node, DoctorShowsWhatWasBound) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const auto exit = run_command({todoke_binary(), "doctor", "--data_dir", folder.path().string()});
  EXPECT_EQ(exit.code, 0) << exit.out << exit.err;
  EXPECT_THAT(exit.out, HasSubstr("public " + node.public_address()));
  EXPECT_THAT(exit.out, HasSubstr("internal " + node.internal_address()));
  EXPECT_THAT(exit.out, HasSubstr("all applied"));
}

TEST_F(Node, LiftedRateLimitsAreToldAtTheStart) {
  TodokeUp node(folder.path(), {"--limits.rates", "off"});
  node.wait_ready();
  EXPECT_THAT(node.process().err(), HasSubstr("limits.rates"));
}

TEST_F(Node, RunsAsAPlainUser) {
  if (geteuid() != 0) {
    SUCCEED() << "every other test here runs as a plain user";
    return;
  }
  const auto copy = folder.path() / "todoke";
  std::filesystem::copy_file(todoke_binary(), copy);
  const auto data = folder.path() / "data";
  std::filesystem::create_directory(data);
  const auto* user = getpwnam("postgres");
  ASSERT_NE(user, nullptr);
  ASSERT_EQ(chown(data.c_str(), user->pw_uid, user->pw_gid), 0);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  ChildProcess node({copy.string(), "up", "--data_dir", data.string(), "--server.listen", "127.0.0.1:0",
                     "--server.internal_listen", "127.0.0.1:0"},
                    {}, "postgres");
  node.wait_for_output("ready after");
  node.kill(SIGTERM);
  EXPECT_EQ(node.wait().code, 0);
}

TEST_F(Node, StayingRootItWorksWhereOnlyRootCanReachTheFolder) {
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0700));
  TodokeUp node(folder.path() / "deep/data", {"--server.user", "root"});
  node.wait_ready();
  EXPECT_EQ(node.sql("select 1"), "1");
  node.process().kill(SIGTERM);
  EXPECT_EQ(node.process().wait().code, 0);
}

TEST_F(Node, StopsWhileItWaitsForADatabaseThatIsNotThere) {
  TodokeUp node(folder.path(), {},
                {"DATABASE_URL=host=" + folder.path().string() + " user=todoke dbname=todoke"});
  node.process().wait_for_output("connect failed");
  EXPECT_EQ(http_get("http://" + node.internal_address() + "/healthz").status, 503);
  EXPECT_EQ(http_get("http://" + node.public_address() + "/healthz").status, 503) << "answers while it waits";
  node.process().kill(SIGTERM);
  EXPECT_EQ(node.process().wait().code, 0);
}

TEST_F(Node, StopsWithATraceCollectorThatDoesNotAnswer) {
  TodokeUp node(folder.path(), {"--trace.endpoint", "http://127.0.0.1:1"});
  node.wait_ready();
  EXPECT_EQ(http_get("http://" + node.public_address() + "/healthz").status, 200);
  node.process().kill(SIGTERM);
  EXPECT_EQ(node.process().wait().code, 0);
}

TEST_F(Node, AFolderThatOthersPreparedForUsIsRefused) {
  std::filesystem::create_directory_symlink("/tmp", folder.path() / "instances");
  TodokeUp node(folder.path());
  const auto exit = node.process().wait();
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr("instances"));
}

TEST_F(Node, ASecondSignalStopsAtOnceAndTheNextStartIsFine) {
  {
    TodokeUp node(folder.path());
    node.wait_ready();
    wait_until("the end", [&] {  // two at the same moment count as one, so it takes more
      ::kill(node.process().pid(), SIGTERM);
      std::ifstream status("/proc/" + std::to_string(node.process().pid()) + "/stat");
      std::string text;
      std::getline(status, text);
      return text.find(") Z ") != std::string::npos;
    });
    node.process().wait();
    wait_until_none_in(folder.path());
  }
  TodokeUp node(folder.path());
  node.wait_ready();
}

}  // namespace
}  // namespace todoke::test
