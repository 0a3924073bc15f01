// NIP-50 on the wire: a node with its relay and its index.
#include <csignal>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using nostr::Event;
using nostr::SecretKey;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

constexpr std::int64_t kTime = 1'700'000'000;
constexpr const char* kOther = "kukuri:6a54d8878560a94315b9b702f62f989ee2e1ee75a8b04e5b5d372e9877f27eb3";

class Search : public testing::Test {
 protected:
  void up(std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--limits.rates", "off"});
    node = std::make_unique<TodokeUp>(folder.path(), flags);
    node->wait_ready();
    client = std::make_unique<NostrClient>("ws://" + node->public_address() + "/relay");
  }
  Event store(const std::string& content,
              std::vector<std::vector<std::string>> tags = {{"t", "kukuri:global"}}, nostr::Kind kind = 1,
              std::int64_t time = kTime) {
    auto event = note(alice, content, std::move(tags), kind, time);
    const auto ok = client->publish(event);
    EXPECT_TRUE(ok.accepted) << ok.text;
    return event;
  }
  void await_index() {
    wait_until("the index", [&] {
      return node->sql(
                 "SELECT last_seq = (SELECT max(seq) FROM cn_relay.events_outbox) "
                 "FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'") == "t";
    });
  }
  // The ids that a search in the global topic gives, the best first.
  std::vector<std::string> find(const std::string& text, const std::string& more = "") {
    return client->stored(fmt::format(R"({{"search":"{}","#t":["kukuri:global"]{}}})", text, more)).ids;
  }

  TempFolder folder;
  std::unique_ptr<TodokeUp> node;
  std::unique_ptr<NostrClient> client;
  SecretKey alice = SecretKey::generate();
};

std::string id(const Event& event) {
  return event.id().hex();
}

TEST_F(Search, IsOffWithTopicsAndOnInOpenUnlessSaidOtherwise) {
  const auto answer = [&] { return client->stored(R"({"search":"x","#t":["kukuri:global"]})").closed; };
  const auto nips = [&] {
    return run_command({"curl", "-sS", "--noproxy", "*", "-H", "Accept: application/nostr+json",
                        "http://" + node->public_address() + "/relay"})
        .out;
  };
  const auto again = [&](std::vector<std::string> flags) {
    if (node) {
      client.reset();
      node->process().kill(SIGTERM);
      node->process().wait();
    }
    up(std::move(flags));
  };
  again({});
  EXPECT_EQ(answer(), "unsupported: search");
  EXPECT_THAT(nips(), Not(HasSubstr(",50,")));
  again({"--relay.topic_policy", "open"});
  EXPECT_EQ(answer(), "");
  EXPECT_THAT(nips(), HasSubstr(",50,"));
  again({"--relay.topic_policy", "open", "--relay.search", "off"});
  EXPECT_EQ(answer(), "unsupported: search");
  again({"--relay.search", "on"});
  EXPECT_EQ(answer(), "");
  // NIP-50 is for REQ; a COUNT of what is ranked would be one of the index.
  EXPECT_THAT(client->count("c", R"({"search":"x","#t":["kukuri:global"]})"),
              HasSubstr("unsupported: search with COUNT or seq_after"));
  EXPECT_EQ(client->stored(R"({"search":"x","seq_after":0,"#t":["kukuri:global"]})").closed,
            "unsupported: search with COUNT or seq_after");
}

TEST_F(Search, FindsTwoCharacterWordsAndEnglishWordsAndTheirBeginnings) {
  up({"--relay.search", "on"});
  const auto tokyo = store("昨日は東京都庁の展望台に行きました");
  const auto seoul = store("오늘 서울시청 앞에서 만나요");
  const auto beijing = store("我們在北京大學見面");
  const auto english = store("The Quick brown foxes jumped over example.com");
  const auto other = store("nothing of the kind");
  await_index();
  EXPECT_THAT(find("東京"), ElementsAre(id(tokyo)));
  EXPECT_THAT(find("都庁"), ElementsAre(id(tokyo)));
  EXPECT_THAT(find("京庁"), IsEmpty());
  EXPECT_THAT(find("시청"), ElementsAre(id(seoul)));
  EXPECT_THAT(find("大學"), ElementsAre(id(beijing)));
  EXPECT_THAT(find("quick"), ElementsAre(id(english)));
  EXPECT_THAT(find("brown fox"), ElementsAre(id(english)));
  EXPECT_THAT(find("uick"), IsEmpty());
  EXPECT_THAT(find("ＱＵＩＣＫ"), ElementsAre(id(english)));
  EXPECT_THAT(find("example.com"), ElementsAre(id(english)));
  EXPECT_THAT(find("kind nothing"), ElementsAre(id(other)));
  EXPECT_THAT(find(std::string(2'000, 'x')), IsEmpty());
  EXPECT_EQ(
      client->stored(fmt::format(R"({{"search":"{}","#t":["kukuri:global"]}})", std::string(2'000, 'x')))
          .closed,
      "invalid: search text too long or too complex");
}

TEST_F(Search, ObeysTheOtherPartsOfItsFilter) {
  up({"--relay.search", "on", "--relay.accept_topics", "any"});
  const auto global = store("needle one");
  const auto elsewhere = store("needle two", {{"t", kOther}});
  const auto both = store("needle three", {{"t", kOther}, {"t", "kukuri:global"}}, 1, kTime + 10);
  const auto article = store("needle four", {{"t", "kukuri:global"}, {"d", "x"}}, 30023);
  store("needle five", {{"t", "kukuri:global"}}, 7);  // a reaction is not searched
  await_index();
  EXPECT_THAT(find("needle"), UnorderedElementsAre(id(global), id(both), id(article)));
  EXPECT_THAT(client->stored(fmt::format(R"({{"search":"needle","#t":["{}"]}})", kOther)).ids,
              UnorderedElementsAre(id(elsewhere), id(both)));
  EXPECT_THAT(find("needle", R"(,"kinds":[30023])"), ElementsAre(id(article)));
  EXPECT_THAT(find("needle", fmt::format(R"(,"since":{})", kTime + 1)), ElementsAre(id(both)));
  EXPECT_THAT(find("needle", fmt::format(R"(,"authors":["{}"])", std::string(64, 'a'))), IsEmpty());
  EXPECT_THAT(find("needle", R"(,"limit":2)").size(), 2U);
  EXPECT_THAT(find("needle", R"(,"limit":0)"), IsEmpty());
  // With the policy `topics` a search needs its topic like every filter.
  EXPECT_THAT(client->stored(R"({"search":"needle"})").closed, Not(IsEmpty()));
}

TEST_F(Search, DoesNotFindWhatWasDeletedOrReplacedEvenBeforeTheIndexKnows) {
  up({"--relay.search", "on"});
  const auto regretted = store("needle regretted");
  const auto older = store("needle older", {{"t", "kukuri:global"}, {"d", "x"}}, 30023);
  const auto kept = store("needle kept");
  await_index();
  EXPECT_EQ(find("needle").size(), 3U);
  node->sql("UPDATE cn_relay.consumer_offsets SET paused = true WHERE consumer = 'index-v1'");
  store("", {{"t", "kukuri:global"}, {"e", id(regretted)}}, 5);
  const auto newer = store("needle newer", {{"t", "kukuri:global"}, {"d", "x"}}, 30023, kTime + 1);
  EXPECT_THAT(find("needle"), ElementsAre(id(kept)));
  node->sql("UPDATE cn_relay.consumer_offsets SET paused = false WHERE consumer = 'index-v1'");
  await_index();
  EXPECT_THAT(find("needle"), UnorderedElementsAre(id(kept), id(newer)));
  EXPECT_EQ(node->sql("SELECT count(*) FROM cn_search.post_search_documents WHERE deleted_at IS NOT NULL"),
            "2");
}

TEST_F(Search, WithoutAnIndexIsToldInHealthAndByTheDoctor) {
  up({});
  node->process().kill(SIGTERM);
  node->process().wait();
  ChildProcess relay(
      {todoke_binary(), "run", "--roles", "relay", "--data_dir", folder.path().string(), "--server.listen",
       "127.0.0.1:0", "--server.internal_listen", "127.0.0.1:0", "--relay.search", "on"},
      {});
  relay.wait_for_output("relay.search is on, but no node runs index-v1 (role index)");
  const auto doctor =
      run_command({todoke_binary(), "doctor", "--data_dir", folder.path().string(), "--relay.search", "on"});
  EXPECT_THAT(doctor.out, HasSubstr("warn  search         relay.search is on, but no node runs index-v1"));
  relay.kill(SIGTERM);
  relay.wait();
  wait_until_none_in(folder.path());
}

}  // namespace
}  // namespace todoke::test
