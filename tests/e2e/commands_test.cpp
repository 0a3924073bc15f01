// The command line: what it prints and how it ends.
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::Not;

Exit todoke(std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), todoke_binary());
  return run_command(arguments, environment);
}

TEST(CommandLine, VersionNamesTheProgramAndEndsWell) {
  const auto exit = todoke({"version"});
  EXPECT_EQ(exit.code, 0);
  EXPECT_THAT(exit.out, testing::StartsWith("todoke "));
}

TEST(CommandLine, HelpListsEveryCommandAndEachHasItsOwnHelp) {
  const auto help = todoke({"help"});
  EXPECT_EQ(help.code, 0);
  for (const auto* name : {"up", "run", "migrate", "doctor", "psql", "config", "version"}) {
    EXPECT_THAT(help.out, HasSubstr(std::string("  ") + name));
    const auto own = todoke({"help", name});
    EXPECT_EQ(own.code, 0) << name;
    EXPECT_THAT(own.out, HasSubstr(std::string("Usage: todoke ") + name));
  }
  EXPECT_EQ(todoke({"up", "--help"}).out, todoke({"help", "up"}).out);
  EXPECT_EQ(todoke({"psql", "--help"}).out, todoke({"help", "psql"}).out);
}

TEST(CommandLine, WrongUseSaysWhatIsWrongAndEndsWithTwo) {
  const auto unknown = todoke({"uo"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("'uo' is no command"));
  const auto option = todoke({"version", "--lisetn", "x"});
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.err, HasSubstr("--lisetn"));
  EXPECT_EQ(todoke({"config", "--server.listen"}).code, 2) << "a key without a value";
  EXPECT_EQ(todoke({"version", "more"}).code, 2);
  EXPECT_EQ(todoke({}).code, 2);
  const auto role = todoke({"run", "--roles", "nonsense"});
  EXPECT_EQ(role.code, 1);
  EXPECT_THAT(role.err, HasSubstr("'nonsense' is no role"));
}

TEST(CommandLine, ConfigShowsValuesWithTheirSourcesAndMasksSecrets) {
  const TempFolder folder;
  const auto file = folder.path() / "t.toml";
  std::ofstream(file) << "[server]\nlisten = \"127.0.0.1:1234\"\n";
  const auto exit =
      todoke({"config", "--short", "--config", file.string(), "--log.level", "debug"},
             {"DATABASE_URL=postgres://u:topsecret@h/d", "TODOKE_SERVER_INTERNAL_LISTEN=127.0.0.1:9"});
  EXPECT_EQ(exit.code, 0) << exit.err;
  EXPECT_THAT(exit.out, HasSubstr("server.listen = 127.0.0.1:1234  # " + file.string() + ":2"));
  EXPECT_THAT(exit.out, HasSubstr("server.internal_listen = 127.0.0.1:9  # TODOKE_SERVER_INTERNAL_LISTEN"));
  EXPECT_THAT(exit.out, HasSubstr("log.level = debug  # --log.level"));
  EXPECT_THAT(exit.out, HasSubstr("database.url = ********  # DATABASE_URL"));
  EXPECT_THAT(exit.out, Not(HasSubstr("topsecret")));
}

TEST(CommandLine, ConfigExplainsEveryKey) {
  const auto exit = todoke({"config"});
  EXPECT_EQ(exit.code, 0);
  EXPECT_THAT(exit.out, HasSubstr("server.listen = 127.0.0.1:7447"));
  EXPECT_THAT(exit.out, HasSubstr("variable: TODOKE_SERVER_INTERNAL_LISTEN"));
  EXPECT_THAT(exit.out, HasSubstr("allowed: one of on off; default: on"));
}

TEST(CommandLine, AWrongKeyNamesFileLineAndKey) {
  const TempFolder folder;
  const auto file = folder.path() / "t.toml";
  std::ofstream(file) << "[server]\n\nlistne = 1\n";
  const auto exit = todoke({"up", "--config", file.string()});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr(file.string() + ":3: server.listne"));
  EXPECT_EQ(todoke({"up"}, {"TODOKE_NO_SUCH_KEY=1"}).code, 1);
  EXPECT_THAT(todoke({"up"}, {"TODOKE_SERVER_TRUSTED_PROXIES=foo"}).err, HasSubstr("server.trusted_proxies"));
  EXPECT_THAT(todoke({"up"}, {"TODOKE_SERVER_LISTEN="}).err, HasSubstr("TODOKE_SERVER_LISTEN"));
  EXPECT_THAT(todoke({"up"}, {"TODOKE_TRACE_ENDPOINT=foo"}).err, HasSubstr("trace.endpoint"));
}

TEST(CommandLine, ThePageInTheDocsIsTheTableInTheBinary) {
  std::ifstream file(std::string(TODOKE_DOCS) + "/configuration.md");
  std::stringstream page;
  page << file.rdbuf();
  EXPECT_EQ(page.str(), todoke({"config", "--markdown"}).out)
      << "run: todoke config --markdown > docs/configuration.md";
}

TEST(CommandLine, DoctorWithoutANodeSaysHowToStartOne) {
  const TempFolder folder;
  const auto exit = todoke({"doctor", "--data_dir", folder.path().string(), "--server.listen", "127.0.0.1:0",
                            "--server.internal_listen", "127.0.0.1:0"});
  EXPECT_EQ(exit.code, 0) << exit.out << exit.err;
  EXPECT_THAT(exit.out, HasSubstr("`todoke up` starts one"));
}

TEST(CommandLine, DoctorFindsWhatAStartWouldRefuse) {
  const TempFolder folder;
  const auto proxies =
      todoke({"doctor", "--data_dir", folder.path().string(), "--server.trusted_proxies", "foo"});
  EXPECT_EQ(proxies.code, 1);
  EXPECT_THAT(proxies.out, HasSubstr("server.trusted_proxies"));
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_EQ(todoke({"doctor", "--data_dir", (folder.path() / "file").string()}).code, 1);
}

TEST(CommandLine, DoctorShowsHowMuchIsFreeAndFailsBelowTheLeast) {
  const TempFolder folder;
  const auto fine = todoke({"doctor", "--data_dir", folder.path().string(), "--server.listen", "127.0.0.1:0",
                            "--server.internal_listen", "127.0.0.1:0", "--capacity.min_free_bytes", "1"});
  EXPECT_THAT(fine.out, HasSubstr("ok    free space     ")) << fine.out;
  const auto low = todoke(
      {"doctor", "--data_dir", folder.path().string(), "--capacity.min_free_bytes", "1000000000000000"});
  EXPECT_EQ(low.code, 1);
  EXPECT_THAT(low.out, HasSubstr("FAIL  free space     "));
  EXPECT_THAT(low.out, HasSubstr("nothing is stored; make room"));
}

// What a start refuses before it touches anything, in the same words.
TEST(CommandLine, DoctorAndStartRefuseTheSameSettings) {
  const TempFolder folder;
  const std::vector<std::vector<std::string>> wrong{{"--relay.pubkey", "npub1xyz"},
                                                    {"--relay.limit_max", "100"},
                                                    {"--relay.public_url", "ftp://x"},
                                                    {"--log.retention", "90d"},
                                                    {"--relay.send_queue_bytes_max", "64KiB"},
                                                    {"--outbox.lock_lease_sec", "2"},
                                                    {"--broker.adapter", "http", "--outbox.enabled", "true"},
                                                    {"--orders.instruments", "x"},
                                                    {"--trace.endpoint", "foo"},
                                                    {"--server.internal_listen", "127.0.0.1:7447"}};
  for (const auto& flags : wrong) {
    // `up` has a rule of its own for brokers.
    const std::string start_with = flags[0] == "--broker.adapter" ? "run" : "up";
    std::vector<std::string> up{start_with, "--data_dir", folder.path().string()};
    up.insert(up.end(), flags.begin(), flags.end());
    const auto start = todoke(up);
    EXPECT_EQ(start.code, 1) << flags[0];
    const auto prefix = std::string("todoke: ");
    const auto at = start.err.rfind(prefix);
    ASSERT_NE(at, std::string::npos) << start.err;
    const auto message = start.err.substr(at + prefix.size());
    up[0] = "doctor";
    const auto doctor = todoke(up);
    EXPECT_EQ(doctor.code, 1) << flags[0] << doctor.out;
    EXPECT_THAT(doctor.out, HasSubstr("FAIL  configuration  " + message));
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "postgres"));
}

TEST(CommandLine, AFolderIsNoConfigurationFile) {
  const auto exit = todoke({"config", "--config", "/tmp"});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr("/tmp: is a folder"));
}

TEST(CommandLine, PsqlWithoutANodeSaysWhatToDo) {
  const TempFolder folder;
  const auto exit = todoke({"psql", "-c", "select 1"}, {"TODOKE_DATA_DIR=" + folder.path().string()});
  EXPECT_EQ(exit.code, 1);
  EXPECT_THAT(exit.err, HasSubstr("start one with `todoke up`"));
}

TEST(CommandLine, MigrateWorksOnAFreshFolderAndAgain) {
  const TempFolder folder;
  const auto first = todoke({"migrate", "--data_dir", folder.path().string()});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("applied 0001"));
  const auto second = todoke({"migrate", "--data_dir", folder.path().string()});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, Not(HasSubstr("applied")));
  wait_until_none_in(folder.path());
}

}  // namespace
}  // namespace todoke::test
