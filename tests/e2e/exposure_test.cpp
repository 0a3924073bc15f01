// A node as it comes: who may talk to it, and as whom it runs.
#include <csignal>
#include <fstream>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/certificate.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kNoCapability = "0000000000000000";

Exit todoke(std::vector<std::string> words, const std::filesystem::path& data_dir) {
  words.insert(words.begin(), todoke_binary());
  words.insert(words.end(), {"--data_dir", data_dir.string()});
  return run_command(words);
}

int status_for_host(const std::string& url, const std::string& host,
                    const std::vector<std::string>& more = {}) {
  std::vector<std::string> command{"curl",      "-s", "--noproxy",    "*",  "--max-time",   "10", "-o",
                                   "/dev/null", "-w", "%{http_code}", "-H", "Host: " + host};
  command.insert(command.end(), more.begin(), more.end());
  command.push_back(url);
  const auto exit = run_command(command);
  return exit.out.empty() ? 0 : std::stoi(exit.out);
}

std::string status_line(const std::filesystem::path& process, const std::string& name) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return {};
}

std::string ids(uid_t id) {
  return fmt::format("{0}\t{0}\t{0}\t{0}", id);
}

uid_t owner_of(const std::filesystem::path& path) {
  struct stat info{};
  return lstat(path.c_str(), &info) == 0 ? info.st_uid : 0;
}

pid_t postmaster_in(const std::filesystem::path& data_dir) {
  std::ifstream file(data_dir / "postgres/postmaster.pid");
  pid_t pid = 0;
  file >> pid;
  return pid;
}

// Every thread of the node is `user` and nothing more.
void expect_only(pid_t node, const passwd& user) {
  for (const auto& thread : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", node))) {
    EXPECT_EQ(status_line(thread.path(), "Uid"), ids(user.pw_uid));
    EXPECT_EQ(status_line(thread.path(), "Gid"), ids(user.pw_gid));
    EXPECT_EQ(status_line(thread.path(), "NoNewPrivs"), "1");
    EXPECT_THAT(" " + status_line(thread.path(), "Groups"), Not(HasSubstr(" 0 ")));
    for (const auto* set : {"CapInh", "CapPrm", "CapEff", "CapAmb"})
      EXPECT_EQ(status_line(thread.path(), set), kNoCapability) << set;
  }
}

struct Exposure : testing::Test {
  TempFolder folder;
};

// Started as root.
struct RootStart : Exposure {
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
  const passwd& user() const {
    const auto* found = getpwuid(owner_of(folder.path() / "postgres"));
    if (found == nullptr) throw std::runtime_error("nobody has the cluster");
    return *found;
  }
};

TEST_F(Exposure, OrdersFromEverybodyAreNotTakenByAccident) {
  for (const std::string command : {"up", "run"}) {
    const auto exit = todoke({command, "--server.listen", "0.0.0.0:0"}, folder.path());
    EXPECT_EQ(exit.code, 1);
    EXPECT_THAT(exit.err, AllOf(HasSubstr("orders.tokens_file"), HasSubstr("orders.allow_anonymous = true")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "postgres")) << "nothing was touched";
  const auto doctor = todoke({"doctor", "--server.listen", "0.0.0.0:0"}, folder.path());
  EXPECT_EQ(doctor.code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("orders.allow_anonymous = true"));

  TodokeUp node(folder.path(), {"--server.listen", "0.0.0.0:0", "--orders.allow_anonymous", "true",
                                "--server.internal_listen", "0.0.0.0:0"});
  node.wait_ready();
  EXPECT_THAT(node.process().err(), AllOf(HasSubstr("orders.allow_anonymous: whoever can reach"),
                                          HasSubstr("server.internal_listen is 0.0.0.0:0")));
  EXPECT_THAT(todoke({"doctor"}, folder.path()).out,
              AllOf(HasSubstr("warn  exposure       server.internal_listen"),
                    HasSubstr("warn  exposure       orders.allow_anonymous"),
                    HasSubstr("ok    order tokens   none: everybody who reaches")));
}

TEST_F(Exposure, UpKeepsAwayFromBrokersThatTrade) {
  const auto exit =
      todoke({"up", "--broker.adapter", "http", "--orders.http.url", "http://127.0.0.1:1"}, folder.path());
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, AllOf(HasSubstr("broker.adapter is http"), HasSubstr("`todoke run`")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "postgres"));
}

TEST_F(Exposure, AForeignNameIsTurnedAwayOnBothListenersAndFromWebSockets) {
  TodokeUp node(folder.path(), {"--server.hosts", "relay.lan"});
  node.wait_ready();
  const auto outside = "http://" + node.public_address();
  const auto inside = "http://" + node.internal_address();
  for (const auto& url : {outside + "/healthz", inside + "/healthz", inside + "/metrics"}) {
    EXPECT_EQ(status_for_host(url, "evil.example"), 421) << url;
    for (const auto* host : {"localhost", "127.0.0.1:7447", "[::1]", "relay.lan:80"})
      EXPECT_EQ(status_for_host(url, host), 200) << url << " " << host;
  }
  EXPECT_EQ(
      status_for_host(outside + "/healthz", "localhost", {"--request-target", "http://evil.example/healthz"}),
      421);
  const std::vector<std::string> upgrade{"--http1.1",
                                         "-H",
                                         "Connection: Upgrade",
                                         "-H",
                                         "Upgrade: websocket",
                                         "-H",
                                         "Sec-WebSocket-Version: 13",
                                         "-H",
                                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
                                         "-H",
                                         "Origin: https://web.example",
                                         "--max-time",
                                         "1"};
  EXPECT_EQ(status_for_host(outside + "/relay", "evil.example", upgrade), 421);
  EXPECT_EQ(status_for_host(outside + "/relay", "localhost", upgrade), 101)
      << "pages of others may talk Nostr";
  EXPECT_GT(node.metric("todoke_http_hosts_refused_total{listener=\"public\"}"), 2);

  const auto set = todoke({"config", "set", "relay.public_url", "wss://relay.example.org"}, folder.path());
  ASSERT_EQ(set.code, 0) << set.err;
  wait_until("the new name",
             [&] { return status_for_host(outside + "/healthz", "relay.example.org") == 200; });
}

TEST_F(Exposure, TheNodeWorksAsARoleThatIsNoSuperuser) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const std::string sessions =
      "SELECT DISTINCT r.rolname, r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolbypassrls OR "
      "r.rolreplication "
      "FROM pg_stat_activity a JOIN pg_roles r ON r.rolname = a.usename "
      "WHERE a.backend_type = 'client backend' AND a.pid <> pg_backend_pid()";
  wait_until("the migrations' connection to end", [&] { return node.sql(sessions) == "todoke_node|f"; });
}

TEST_F(RootStart, BecomesAnotherUserForGood) {
  TodokeUp node(folder.path());
  node.wait_ready();
  ASSERT_NE(user().pw_uid, 0U);
  expect_only(node.process().pid(), user());
  EXPECT_EQ(status_line(fmt::format("/proc/{}", postmaster_in(folder.path())), "Uid"), ids(user().pw_uid));
  for (const auto* path : {"", "todoke.lock", "run", "instances"})
    EXPECT_EQ(owner_of(folder.path() / path), user().pw_uid) << path;
  EXPECT_THAT(node.process().err(), HasSubstr("gave up root"));

  // What root does beside it.
  const auto doctor = todoke({"doctor"}, folder.path());
  EXPECT_EQ(doctor.code, 0) << doctor.out;
  EXPECT_THAT(doctor.out, HasSubstr(fmt::format("ok    user           a node that root starts becomes {}",
                                                user().pw_name)));
  EXPECT_EQ(node.sql("SELECT current_user"), "todoke");
  EXPECT_EQ(todoke({"topic", "list"}, folder.path()).code, 0);
  EXPECT_EQ(todoke({"config", "set", "relay.name", "one"}, folder.path()).code, 0);
  node.process().kill(SIGHUP);
  node.process().wait_for_output("settings read again");

  // What the node does by itself afterwards.
  const auto before = postmaster_in(folder.path());
  ASSERT_EQ(kill(before, SIGKILL), 0);
  wait_until("another postmaster", [&] {
    const auto now = postmaster_in(folder.path());
    return now != 0 && now != before;
  });
  wait_until("health", [&] { return node.health().starts_with("{\"status\":\"up\""); });
  EXPECT_EQ(node.stop().code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "postgres/postmaster.pid"));
}

TEST_F(RootStart, ItsFolderGoesOnAsRootAsThatUserAndAfterAKill) {
  {
    TodokeUp killed(folder.path());
    killed.wait_ready();
    killed.sql("CREATE TABLE kept AS SELECT 42 AS answer");
    killed.process().kill(SIGKILL);
    killed.process().wait();
  }
  {
    TodokeUp again(folder.path());
    again.wait_ready();
    EXPECT_EQ(again.sql("SELECT answer FROM kept"), "42");
    EXPECT_EQ(again.stop().code, 0);
  }
  // A command of root that starts the database by itself leaves nothing of root's behind.
  EXPECT_EQ(todoke({"migrate"}, folder.path()).code, 0);
  const TempFolder place;
  std::filesystem::copy_file(todoke_binary(), place.path() / "todoke");
  std::filesystem::permissions(place.path(), std::filesystem::perms(0755));
  {
    ChildProcess plain({(place.path() / "todoke").string(), "up", "--data_dir", folder.path().string(),
                        "--server.listen", "127.0.0.1:0", "--server.internal_listen", "127.0.0.1:0"},
                       {}, user().pw_name);
    plain.wait_for_output("ready after");
    plain.kill(SIGINT);
    EXPECT_EQ(plain.wait().code, 0);
  }
  TodokeUp last(folder.path());
  last.wait_ready();
  EXPECT_EQ(last.sql("SELECT answer FROM kept"), "42");
}

TEST_F(RootStart, StaysRootOnlyWhereThatIsSaid) {
  {
    TodokeUp node(folder.path(), {"--server.user", "root"});
    node.wait_ready();
    EXPECT_EQ(status_line(fmt::format("/proc/{}", node.process().pid()), "Uid"), ids(0));
    EXPECT_NE(status_line(fmt::format("/proc/{}", postmaster_in(folder.path())), "Uid"), ids(0));
    EXPECT_THAT(node.process().err(), HasSubstr("stays root (server.user)"));
    EXPECT_THAT(todoke({"doctor"}, folder.path()).out, HasSubstr("warn  user           server.user is root"));
    EXPECT_EQ(node.stop().code, 0);
  }
  TodokeUp node(folder.path());
  node.wait_ready();
  expect_only(node.process().pid(), user());
}

TEST_F(RootStart, ACertificateThatOnlyRootReadsServesUntilARestart) {
  net::test::TestCertificate certificate;  // in a folder that is closed to others
  TodokeUp node(folder.path(),
                {"--server.tls_cert", certificate.cert(), "--server.tls_key", certificate.key()});
  node.wait_ready();
  const std::vector<std::string> ask{"curl", "-sk",       "--noproxy",
                                     "*",    "-w",        "%{http_code}",
                                     "-o",   "/dev/null", "https://" + node.public_address() + "/healthz"};
  EXPECT_EQ(run_command(ask).out, "200");
  node.process().kill(SIGHUP);
  node.process().wait_for_output(
      "only root can read this file, and the node has given up root: a restart reads it again");
  node.process().wait_for_output("certificate not changed");
  EXPECT_EQ(run_command(ask).out, "200") << "with the one of the start";
}

TEST_F(RootStart, AFolderThatTheUserCanNotReachIsRefused) {
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0700));
  const auto exit =
      todoke({"up", "--server.listen", "127.0.0.1:0", "--server.internal_listen", "127.0.0.1:0"},
             folder.path() / "data");
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, AllOf(HasSubstr("can't reach the data folder"), HasSubstr("server.user")));
}

TEST_F(RootStart, NoConfigurationIsTakenFromWhereverRootStands) {
  std::ofstream(folder.path() / "todoke.toml") << "[server]\nlisten = \"127.0.0.1:1\"\n";
  const auto show = [&](const std::string& more) {
    return run_command({"sh", "-c",
                        "cd " + folder.path().string() + " && exec " + todoke_binary() +
                            " config server.listen --short " + more + " --data_dir " +
                            (folder.path() / "data").string()});
  };
  EXPECT_THAT(show("").out, HasSubstr("127.0.0.1:7447"));
  EXPECT_THAT(show("").err, HasSubstr("todoke.toml is ignored"));
  EXPECT_THAT(show("--config todoke.toml").out, HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace todoke::test
