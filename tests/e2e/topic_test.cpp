// `todoke topic` beside a running node, and what its relay makes of it.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"
#include "nostr/texts.hpp"

namespace todoke::test {
namespace {

using testing::HasSubstr;

constexpr auto* kBitcoin = "kukuri:6a54d8878560a94315b9b702f62f989ee2e1ee75a8b04e5b5d372e9877f27eb3";

class Topic : public testing::Test {
 protected:
  Exit topic(std::vector<std::string> words) {
    std::vector<std::string> command{todoke_binary(), "topic"};
    command.insert(command.end(), words.begin(), words.end());
    command.insert(command.end(), {"--data_dir", folder.path().string()});
    return run_command(command);
  }

  TempFolder folder;
};

TEST_F(Topic, AnIdIsComputedWithoutANode) {
  EXPECT_THAT(topic({"id", "  BITCOIN "}).out, HasSubstr(kBitcoin));
  EXPECT_THAT(topic({"id", "kukuri:global"}).out,
              HasSubstr("gossip      6040b66666984ed2b45873182432d1c1378f8430cfc1ecb718f61468b6c60b1b"));
  const auto both = topic({"id", "Bitcoin", "--topics.mapping", "both"}).out;
  EXPECT_THAT(both, HasSubstr(kBitcoin));
  EXPECT_THAT(both, HasSubstr("mapping     v2"));
}

TEST_F(Topic, QuietPrintsTheIdAlone) {
  EXPECT_EQ(topic({"id", "Bitcoin", "-q"}).out, std::string(kBitcoin) + "\n");
  EXPECT_EQ(topic({"id", "-q", "Bitcoin"}).out, std::string(kBitcoin) + "\n");
  EXPECT_EQ(topic({"id", "kukuri:global", "--quiet"}).out, "kukuri:global\n");
  const auto both = topic({"id", "Bitcoin", "-q", "--topics.mapping", "both"}).out;
  EXPECT_EQ(std::count(both.begin(), both.end(), '\n'), 2) << both;
}

TEST_F(Topic, WrongUseIsExplained) {
  EXPECT_EQ(topic({}).code, 2);
  EXPECT_EQ(topic({"enable"}).code, 2);
  EXPECT_THAT(topic({"frobnicate", "x"}).err, HasSubstr("say list, enable, policy, disable, id or show"));
}

TEST_F(Topic, ARunningRelayTakesATopicAsSoonAsItIsEnabledAndNoLonger) {
  TodokeUp node(folder.path(), {"--limits.rates", "off"});
  node.wait_ready();
  NostrClient client("ws://" + node.public_address() + "/relay");
  const auto key = nostr::SecretKey::generate();
  const auto event = note(key, "hello", {{"t", kBitcoin}});
  EXPECT_EQ(client.publish(event).text, "restricted: topic not enabled");

  EXPECT_THAT(topic({"enable", "Bitcoin"}).out, HasSubstr(std::string("enabled ") + kBitcoin));
  wait_until("the relay to take the topic", [&] { return client.publish(event).accepted; });
  const auto shown = topic({"show", "Bitcoin"}).out;
  EXPECT_THAT(shown, HasSubstr("enabled     yes, as the operator decided (pinned)"));
  EXPECT_THAT(shown, HasSubstr("events      1\n"));
  EXPECT_THAT(topic({"list"}).out, HasSubstr(std::string(kBitcoin) + "  Bitcoin\n"));
  EXPECT_THAT(topic({"show", kBitcoin}).out, HasSubstr("name        Bitcoin\n"));
  const auto mistyped = topic({"enable", "kukuri:zzz"});
  EXPECT_EQ(mistyped.code, 1);
  EXPECT_THAT(mistyped.err, HasSubstr("kukuri:zzz: no topic id"));

  ASSERT_EQ(client.request("s", R"({"#t":[")" + std::string(kBitcoin) + R"("]})").closed, "");
  EXPECT_EQ(topic({"disable", "Bitcoin"}).code, 0);
  EXPECT_EQ(client.receive(), R"(["CLOSED","s","restricted: topic not enabled"])");
}

TEST_F(Topic, AnIdIsThatOfTheRunningNodesNetwork) {
  const auto elsewhere = topic({"id", "Bitcoin", "-q", "--topics.network_id", "elsewhere:"}).out;
  EXPECT_NE(elsewhere, std::string(kBitcoin) + "\n");
  TodokeUp node(folder.path(), {"--topics.network_id", "elsewhere:"});
  node.wait_ready();
  EXPECT_EQ(topic({"id", "Bitcoin", "-q"}).out, elsewhere);
  EXPECT_EQ(topic({"enable", "Bitcoin"}).out, "enabled " + elsewhere);
  EXPECT_EQ(topic({"id", "Bitcoin", "-q", "--topics.network_id", "kukuri:main:"}).out,
            std::string(kBitcoin) + "\n");
}

TEST_F(Topic, APolicyIsCheckedBeforeItIsTaken) {
  TodokeUp node(folder.path());
  node.wait_ready();
  EXPECT_THAT(topic({"enable", "Nostr", "--policy", R"({"retention_day":1})"}).err,
              HasSubstr("unknown key retention_day"));
  EXPECT_THAT(topic({"enable", "Nostr", "--policy", "nonsense"}).err,
              HasSubstr("--policy: 'nonsense' is no JSON object"));
  EXPECT_EQ(topic({"enable", "Nostr", "--policy", R"({"retention_days":90,"priority":"low"})"}).code, 0);
  EXPECT_THAT(topic({"show", "Nostr"}).out, HasSubstr(R"("retention_days": 90)"));
}

TEST_F(Topic, NoneIsAddedWhileTheConsumersOfTheLogAreFarBehind) {
  TodokeUp node(folder.path());
  node.wait_ready();
  EXPECT_EQ(topic({"enable", "Before"}).code, 0);
  node.sql("INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, mandatory) VALUES ('slow', 0, true)");
  node.sql(
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
      "SELECT 'upsert', 'none', 'none', 1, 1, now() FROM generate_series(1, 10)");
  const auto refused = topic({"enable", "Bitcoin", "--log.pressure_rows", "1"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("(10 rows, pressure 3): see `todoke consumers list`"));
  EXPECT_EQ(topic({"enable", "Before", "--log.pressure_rows", "1"}).code, 0) << "it is enabled already";
  EXPECT_EQ(topic({"enable", "Bitcoin"}).code, 0) << "100,000 rows are the first step";
}

TEST_F(Topic, ShowsWhatATopicHoldsAndMayHold) {
  TodokeUp node(folder.path(), {"--limits.rates", "off"});
  node.wait_ready();
  EXPECT_EQ(topic({"enable", "Bitcoin", "--policy", R"({"max_events":5})"}).code, 0);
  NostrClient client(node.url());
  const auto event = note(nostr::SecretKey::generate(), "hello", {{"t", kBitcoin}});
  wait_until("the relay to take the topic", [&] { return client.publish(event).accepted; });
  EXPECT_THAT(topic({"show", "Bitcoin"}).out, HasSubstr("stored      1 of 5 events, "));
  EXPECT_THAT(topic({"show", "Bitcoin"}).out, HasSubstr(" of any number of bytes\n"));
}

TEST(Docs, EveryTextOfTheRelayIsListed) {
  std::ifstream file(std::string(TODOKE_DOCS) + "/relay.md");
  std::stringstream page;
  page << file.rdbuf();
  for (const auto& reason : nostr::all_reasons()) {
    EXPECT_THAT(page.str(), HasSubstr('`' + std::string(reason.text) + '`'));
  }
}

}  // namespace
}  // namespace todoke::test
