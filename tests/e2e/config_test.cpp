// The live configuration: `todoke config set` beside running nodes, and what they make of it.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class LiveConfiguration : public testing::Test {
 protected:
  Exit config(std::vector<std::string> words, const std::vector<std::string>& environment = {}) {
    return command("config", std::move(words), environment);
  }
  Exit doctor() { return command("doctor", {}, {}); }
  Exit command(const std::string& name, std::vector<std::string> words,
               const std::vector<std::string>& environment) {
    words.insert(words.begin(), {todoke_binary(), name});
    words.insert(words.end(), {"--data_dir", folder.path().string()});
    return run_command(words, environment);
  }

  // The relay's information document.
  static std::string information(TodokeUp& node) {
    return run_command({"curl", "-sf", "-H", "Accept: application/nostr+json",
                        "http://" + node.public_address() + "/relay"})
        .out;
  }
  static void wait_for_name(TodokeUp& node, const std::string& name) {
    wait_until("the name " + name,
               [&] { return information(node).find("\"name\":\"" + name + "\"") != std::string::npos; });
  }
  static std::string health(TodokeUp& node) {
    return http_get("http://" + node.internal_address() + "/healthz").body;
  }
  static void wait_for_health(TodokeUp& node, const std::string& text) {
    wait_until("health " + text, [&] { return health(node).find(text) != std::string::npos; });
  }
  static std::string metrics(TodokeUp& node) {
    return http_get("http://" + node.internal_address() + "/metrics").body;
  }
  std::string write_file(const std::string& text) {
    const auto path = (folder.path() / "todoke.toml").string();
    std::ofstream(path) << text;
    return path;
  }

  TempFolder folder;
};

TEST_F(LiveConfiguration, AChangeIsFollowedByEveryNodeAndKeptInTheHistory) {
  TodokeUp node(folder.path());
  node.wait_ready();
  const TempFolder elsewhere;
  TodokeUp other(elsewhere.path(), {},
                 {"DATABASE_URL=host=" + (folder.path() / "run").string() + " user=todoke dbname=todoke"});
  other.wait_ready();

  const auto set = config({"set", "relay.name", "harbour"});
  EXPECT_EQ(set.code, 0) << set.err;
  EXPECT_EQ(set.out, "relay.name: todoke (default) -> harbour (version 2)\n");
  wait_for_name(node, "harbour");
  wait_for_name(other, "harbour");
  node.process().wait_for_output("setting changed");
  EXPECT_THAT(config({"relay.name"}).out,
              HasSubstr("relay.name = harbour\n    from database (relay, version 2)\n"));
  EXPECT_THAT(metrics(node), HasSubstr("todoke_config_version{service=\"relay\"} 2"));

  EXPECT_EQ(config({"set", "relay.name", "harbour"}).out, "relay.name is harbour already (version 2)\n");
  EXPECT_EQ(config({"set", "log.level", "error"}).code, 0);
  node.process().wait_for_output(R"("key":"log.level","before":"info","after":"error")");
  const auto unset = config({"unset", "relay.name"});
  EXPECT_EQ(unset.out, "relay.name: harbour -> todoke (default) (version 3)\n");
  wait_for_name(node, "todoke");
  wait_for_name(other, "todoke");
  EXPECT_EQ(config({"unset", "relay.name"}).out, "relay.name has no value in the database\n");
  EXPECT_THAT(node.process().err(), Not(HasSubstr(R"("before":"harbour")"))) << "below log.level";

  const auto history = config({"history", "relay.name"}).out;
  EXPECT_THAT(history, testing::ContainsRegex("3  relay.name +operator:[^ ]+ +harbour -> no value\n.*"
                                              "2  relay.name +operator:[^ ]+ +no value -> harbour\n$"));
  EXPECT_THAT(history, Not(HasSubstr("log.level")));
  EXPECT_THAT(config({"history"}).out, HasSubstr("no value -> error"));
  EXPECT_EQ(node.sql("SELECT string_agg(version || ':' || coalesce(before #>> '{}', '') || '>' || "
                     "coalesce(after #>> '{}', ''), ' ' ORDER BY version) FROM "
                     "cn_admin.service_config_history WHERE key = 'relay.name'"),
            "2:>harbour 3:harbour>");
  EXPECT_THROW(node.sql("DELETE FROM cn_admin.service_config_history"), std::runtime_error);
}

TEST_F(LiveConfiguration, WhatCanNotBeChangedIsRefusedInOneLine) {
  const auto refusal = [&](std::vector<std::string> words, const std::vector<std::string>& environment = {}) {
    const auto exit = config(std::move(words), environment);
    EXPECT_EQ(exit.code, 1) << exit.out;
    EXPECT_EQ(std::count(exit.err.begin(), exit.err.end(), '\n'), 1) << exit.err;
    return exit.err;
  };
  EXPECT_THAT(refusal({"set", "relay.name", "x"}), HasSubstr("no node runs on"));
  EXPECT_THAT(refusal({"history"}), HasSubstr("no node runs on"));

  TodokeUp node(folder.path(), {"--limits.rates", "off"}, {"TODOKE_RELAY_CONTACT=mailto:a@example.org"});
  node.wait_ready();
  EXPECT_THAT(refusal({"set", "relay.nmae", "x"}), HasSubstr("relay.nmae: no such key"));
  EXPECT_THAT(refusal({"set", "relay.limit_max", "many"}),
              HasSubstr("relay.limit_max can't be 'many'; allowed: integer, 1 to 100000"));
  EXPECT_THAT(refusal({"set", "server.listen", "127.0.0.1:1"}), HasSubstr("server.listen is not live"));
  EXPECT_THAT(refusal({"set", "database.url", "postgres://topsecret@h/d"}),
              HasSubstr("database.url is a secret, and secrets never go into the database"));
  EXPECT_THAT(
      refusal({"set", "relay.limit_default", "6000"}),
      testing::StartsWith("todoke: relay.limit_default (6000) must be at most relay.limit_max (5000)"));
  EXPECT_THAT(refusal({"history", "server.listen"}), HasSubstr("server.listen is not live"));
  EXPECT_THAT(refusal({"history", "relay.nmae"}), HasSubstr("relay.nmae: no such key"));
  EXPECT_THAT(refusal({"unset", "relay.nmae"}), HasSubstr("relay.nmae: no such key"));
  EXPECT_THAT(refusal({"unset", "server.listen"}), HasSubstr("server.listen is not live"));
  EXPECT_THAT(refusal({"set", "relay.pubkey", "npub1xyz"}), HasSubstr("64 hex digits"));
  EXPECT_THAT(refusal({"set", "relay.name", "x"}, {"TODOKE_RELAY_NAME=y"}),
              HasSubstr("relay.name is pinned by TODOKE_RELAY_NAME, which wins over the database"));
  const auto pid = std::to_string(node.process().pid());
  EXPECT_THAT(refusal({"set", "limits.rates", "on"}),
              HasSubstr("limits.rates is pinned by --limits.rates of the node with pid " + pid));
  EXPECT_THAT(refusal({"unset", "relay.contact"}),
              HasSubstr("relay.contact is pinned by TODOKE_RELAY_CONTACT of the node with pid " + pid));
  EXPECT_THAT(config({"limits.rates"}).out, HasSubstr("pinned by --limits.rates of the node with pid"));
  EXPECT_EQ(config({"set", "relay.name"}).code, 2);
  EXPECT_EQ(config({"relay.name", "x"}).code, 2);
  EXPECT_EQ(node.sql("SELECT count(*) FROM cn_admin.service_config_history"), "0");
}

TEST_F(LiveConfiguration, ARemovedKeyThatIsStillSetIsToldAndPassedOver) {
  const auto file = write_file("[database]\nconnect_timeout = '1s'\n");
  const std::string in_file = file + ":2: database.connect_timeout is no longer a key and has no effect";
  const std::string by_flag = "--database.embedded_start_timeout: database.embedded_start_timeout is no";
  const auto shown = config({"relay.name", "--config", file}, {"TODOKE_DATABASE_CONNECT_TIMEOUT=2s"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.err, HasSubstr(in_file));
  EXPECT_THAT(shown.err, HasSubstr("TODOKE_DATABASE_CONNECT_TIMEOUT: database.connect_timeout is no longer"));
  EXPECT_THAT(config({"database.connect_timeout"}).err,
              HasSubstr("database.connect_timeout is no longer a key"));

  TodokeUp node(folder.path(), {"--config", file, "--database.embedded_start_timeout", "9s"});
  node.wait_ready();
  node.process().wait_for_output(in_file);
  node.process().wait_for_output(by_flag);
  const auto said = doctor().out;
  EXPECT_THAT(said, HasSubstr("warn  configuration  " + in_file));
  EXPECT_THAT(said, HasSubstr("warn  configuration  " + by_flag));

  node.sql(
      "UPDATE cn_admin.service_configs SET config = config || '{\"log.pressure_rows_1\": \"7\"}'"
      " WHERE service = 'log'");
  node.process().wait_for_output("log.pressure_rows_1 is no longer a key");
  EXPECT_THAT(doctor().out,
              HasSubstr("log.pressure_rows_1 is no longer a key and has no effect: use log.pre"));
  EXPECT_EQ(config({"unset", "log.pressure_rows_1"}).code, 0);
  EXPECT_THAT(doctor().out, Not(HasSubstr("log.pressure_rows_1")));
}

TEST_F(LiveConfiguration, TheFirstStartSeedsItFromTheFileAndLaterEditsOfTheFileAreTold) {
  const auto file = write_file("[relay]\nname = 'seed'\n");
  {
    TodokeUp node(folder.path(), {"--config", file, "--relay.contact", "mailto:a@example.org"});
    node.wait_ready();
    EXPECT_EQ(node.sql("SELECT config FROM cn_admin.service_configs WHERE service = 'relay'"),
              R"({"relay.name": "seed"})");
    EXPECT_EQ(node.sql("SELECT string_agg(service, ' ' ORDER BY service) FROM cn_admin.service_configs"),
              "auth bootstrap capacity gossip limits log relay retention users");
    EXPECT_THAT(config({"history"}).out, testing::ContainsRegex("relay.name +seed +no value -> seed"));
    write_file("[relay]\nname = 'edited'\ndescription = 'new'\n");
    node.process().kill(SIGHUP);
    node.process().wait_for_output("relay.name = edited of " + file + ":2: the database says seed");
    wait_until("the description", [&] { return information(node).find("\"new\"") != std::string::npos; });
    wait_for_name(node, "seed");
    node.process().kill(SIGTERM);
    EXPECT_EQ(node.process().wait().code, 0);
  }
  TodokeUp node(folder.path(), {"--config", file});
  node.process().wait_for_output("relay.name = edited of " + file + ":2: the database says seed");
  node.wait_ready();
  wait_for_name(node, "seed");
  EXPECT_THAT(doctor().out, HasSubstr("warn  live keys      no effect: relay.name = edited of"));
  EXPECT_EQ(config({"unset", "relay.name"}).code, 0);
  wait_for_name(node, "edited");
}

TEST_F(LiveConfiguration, AWrongRowByHandStopsNobodyAndIsTold) {
  {
    TodokeUp node(folder.path());
    node.wait_ready();
    ASSERT_EQ(config({"set", "relay.limit_max", "700"}).code, 0);
    node.sql(R"(UPDATE cn_admin.service_configs SET config = config || '{"relay.limit_max": "many", )"
             R"("relay.name": "by hand", "relay.tags_max": 30}' WHERE service = 'relay')");
    wait_for_name(node, "by hand");
    wait_for_health(node, "relay.limit_max can't be 'many'");
    EXPECT_THAT(health(node), testing::StartsWith("{\"status\":\"degraded\""));
    EXPECT_THAT(information(node), HasSubstr("\"max_limit\":700"));
    EXPECT_THAT(information(node), HasSubstr("\"max_event_tags\":30"));
    EXPECT_THAT(metrics(node), HasSubstr("todoke_config_refused 1\n"));
    EXPECT_THAT(node.process().err(),
                HasSubstr("a value of the database is refused; the last good one holds"));
    EXPECT_THAT(config({"history", "relay.name"}).out,
                testing::ContainsRegex("relay.name +sql:todoke +no value -> by hand"));
    const auto doctor_says = doctor();
    EXPECT_EQ(doctor_says.code, 1);
    EXPECT_THAT(doctor_says.out,
                HasSubstr("FAIL  live keys      database (relay, version 3): relay.limit_max"));
    EXPECT_THAT(doctor_says.out, HasSubstr("warn  health         degraded: configuration degraded ("));
    node.process().kill(SIGTERM);
    EXPECT_EQ(node.process().wait().code, 0);
  }
  TodokeUp node(folder.path());
  node.wait_ready();
  wait_for_name(node, "by hand");
  wait_for_health(node, "relay.limit_max can't be 'many'");
  EXPECT_THAT(information(node), HasSubstr("\"max_limit\":5000")) << "what the file says, or the default";
  ASSERT_EQ(config({"unset", "relay.limit_max"}).code, 0);
  wait_for_health(node, "{\"status\":\"up\"");
  // Values that are right one by one and contradict each other: the row is left out.
  node.sql(R"(UPDATE cn_admin.service_configs SET config = config || '{"relay.limit_default": "9000", )"
           R"("relay.name": "worse"}' WHERE service = 'relay')");
  wait_for_health(node, "relay.limit_default (9000) must be at most relay.limit_max (5000)");
  wait_for_name(node, "by hand");
  node.sql("DELETE FROM cn_admin.service_configs WHERE service = 'relay'");
  wait_for_name(node, "todoke");
  wait_for_health(node, "{\"status\":\"up\"");
  EXPECT_THAT(config({"set", "relay.name", "again"}).out, HasSubstr("(version 7)"));
  wait_for_name(node, "again");
}

TEST_F(LiveConfiguration, AChangeIsCheckedAgainstTheFileOfTheRunningNode) {
  const auto file = write_file("[server]\nio_threads = 1\n");
  TodokeUp node(folder.path(), {"--config", file, "--limits.events_per_minute", "33"});
  node.wait_ready();
  write_file("[server]\nio_threads = 1\n[relay]\nlimit_max = 1000\n");
  node.process().kill(SIGHUP);
  wait_until("the limit", [&] { return information(node).find("\"max_limit\":1000") != std::string::npos; });
  const auto refused = config({"set", "relay.limit_default", "4000"});
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("relay.limit_default (4000) must be at most relay.limit_max (1000)"));
  EXPECT_EQ(config({"set", "relay.limit_default", "900"}).out,
            "relay.limit_default: 500 (default) -> 900 (version 2)\n");

  // What the node has is shown: its file and its flags, and not those of this shell.
  EXPECT_THAT(config({"relay.limit_max"}).out, HasSubstr("relay.limit_max = 1000\n    from " + file));
  EXPECT_THAT(config({"limits.events_per_minute"}).out,
              HasSubstr("limits.events_per_minute = 33\n    from --limits.events_per_minute\n"
                        "    pinned by --limits.events_per_minute of the node with pid"));

  // A row that contradicts itself has no effect as a whole: whoever sets another key of it is told.
  node.sql(R"(UPDATE cn_admin.service_configs SET config = config || '{"relay.limit_default": "4000"}' )"
           "WHERE service = 'relay'");
  wait_for_health(node, "relay.limit_default (4000) must be at most");
  const auto in_vain = config({"set", "relay.description", "X"});
  EXPECT_EQ(in_vain.code, 0);
  EXPECT_THAT(in_vain.err, HasSubstr("refused: database (relay, version 3): relay.limit_default (4000)"));
  EXPECT_THAT(in_vain.err, HasSubstr("relay.description has no effect until that is mended"));
}

TEST_F(LiveConfiguration, AKeyThatIsNoneCanBeTakenOutOfTheDatabase) {
  TodokeUp node(folder.path());
  node.wait_ready();
  node.sql(
      R"(UPDATE cn_admin.service_configs SET config = config || '{"nosuch": "1", "server.listen": "x"}' )"
      "WHERE service = 'relay'");
  wait_for_health(node, "nosuch is no key of relay");
  EXPECT_THAT(config({"unset", "nosuch"}).out, testing::StartsWith("nosuch: 1 -> no value (version 3)"));
  EXPECT_EQ(config({"unset", "server.listen"}).code, 0);
  wait_for_health(node, "{\"status\":\"up\"");
  EXPECT_THAT(doctor().out, HasSubstr("ok    live keys      0 set in the database"));
}

TEST_F(LiveConfiguration, LiftedRatesAreToldWhereverTheyComeFrom) {
  {
    TodokeUp node(folder.path());
    node.wait_ready();
    const auto set = config({"set", "limits.rates", "off"});
    EXPECT_EQ(set.code, 0) << set.err;
    EXPECT_THAT(set.err, HasSubstr("every rate limit is lifted"));
    node.process().wait_for_output("limits.rates is off: every rate limit is lifted");
    EXPECT_THAT(doctor().out, HasSubstr("warn  limits.rates   off (from database (limits, version 2))"));
    node.process().kill(SIGTERM);
    EXPECT_EQ(node.process().wait().code, 0);
  }
  TodokeUp node(folder.path());
  node.process().wait_for_output("limits.rates is off: every rate limit is lifted");
}

TEST_F(LiveConfiguration, OfWritersWhoExpectTheSameVersionOneWins) {
  TodokeUp node(folder.path());
  node.wait_ready();
  std::vector<std::unique_ptr<ChildProcess>> writers;
  for (int i = 0; i < 6; ++i) {
    writers.push_back(std::make_unique<ChildProcess>(
        std::vector<std::string>{todoke_binary(), "config", "set", "relay.name", fmt::format("name-{}", i),
                                 "--data_dir", folder.path().string()},
        std::vector<std::string>{}));
  }
  for (auto& writer : writers) EXPECT_EQ(writer->wait().code, 0);
  // Each change is one version, from what the one before it left.
  EXPECT_EQ(
      node.sql("SELECT count(*) || ' ' || min(version) || ' ' || max(version) || ' ' || count(before) FROM "
               "cn_admin.service_config_history WHERE key = 'relay.name'"),
      "6 2 7 5");
  EXPECT_EQ(node.sql("SELECT count(*) FROM cn_admin.service_config_history a JOIN "
                     "cn_admin.service_config_history b ON b.key = a.key AND b.version = a.version + 1 AND "
                     "b.before IS DISTINCT FROM a.after"),
            "0");
}

TEST_F(LiveConfiguration, DoctorKnowsTheSettingsOfTheRunningNodeAndWhereTheIndexIsPaused) {
  const auto file = write_file("");
  TodokeUp node(folder.path(), {"--config", file, "--relay.search", "on"});
  node.wait_ready();
  wait_until("a node that runs the index", [&] {
    return doctor().out.find("ok    search         relay.search is on, and a node runs index-v1") !=
           std::string::npos;
  });
  EXPECT_THAT(doctor().out, HasSubstr("ok    health         up\n"));
  ASSERT_EQ(command("consumers", {"pause", "index-v1"}, {}).code, 0);
  EXPECT_THAT(doctor().out, HasSubstr("warn  search         relay.search is on, but index-v1 is paused"));
  write_file("[relay]\npubkey = 'npub1xyz'\n");
  const auto edited = doctor();
  EXPECT_EQ(edited.code, 1);
  EXPECT_THAT(
      edited.out,
      HasSubstr("FAIL  configuration  the next start would be refused: relay.pubkey can't be 'npub1xyz'"));
}

}  // namespace
}  // namespace todoke::test
