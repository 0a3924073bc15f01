// What the node's own keys sign needs no topic, and filters for nothing but them need no `#t`.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class OwnKeysTest : public TopicsTest {
 protected:
  OwnKeysTest() {
    add_key(alice, "node");
    EXPECT_TRUE(rig.await_metric("todoke_node_keys", 1));
  }
  void add_key(const SecretKey& key, const std::string& algorithm) const {
    rig.sql(fmt::format("INSERT INTO cn_bootstrap.keys (pubkey, algorithm) VALUES ('{}', '{}')", hex_of(key),
                        algorithm));
  }
  static std::string by(const SecretKey& key, const std::string& more = "") {
    return fmt::format(R"({{"authors":["{}"]{}}})", hex_of(key), more);
  }
  // Without a topic.
  static Event plain(const SecretKey& key, std::string content, Tags tags = {}, nostr::Kind kind = 1) {
    return note(key, std::move(content), std::move(tags), kind);
  }
  std::string count_of(const std::string& filter) { return client.count("c", filter); }
  std::string neg_of(const std::string& filter) {
    client.send(fmt::format(R"(["NEG-OPEN","n",{},"6100000200"])", filter));
    return client.receive(R"(["NEG-)");
  }
};

TEST_F(OwnKeysTest, AnEventWithoutATopicIsTakenFromThemAloneAndFoundByAuthor) {
  EXPECT_EQ(refusal_of(plain(bob, "no topic")), "invalid: missing topic");
  const auto event = plain(alice, "of the node");
  store(event);
  EXPECT_THAT(client.stored(by(alice)).ids, ElementsAre(hex_of(event)));
  EXPECT_THAT(client.stored(by(alice, R"(,"kinds":[1])")).ids, ElementsAre(hex_of(event)));
  EXPECT_THAT(client.stored(by(alice, R"(,"kinds":[2])")).ids, IsEmpty());
  EXPECT_THAT(client.stored(by(alice, fmt::format(R"(,"ids":["{}"])", hex_of(event)))).ids,
              ElementsAre(hex_of(event)));
  EXPECT_EQ(count_of(by(alice)), R"(["COUNT","c",{"count":1}])");
  EXPECT_THAT(neg_of(by(alice)), StartsWith(R"(["NEG-MSG","n",)"));
  // No topic has it.
  EXPECT_THAT(client.stored(kGlobal).ids, IsEmpty());
  EXPECT_EQ(count_of(kGlobal), R"(["COUNT","c",{"count":0}])");
}

TEST_F(OwnKeysTest, TheirEventsOfTopicsAreFoundBothWays) {
  const auto event = global_note(alice, "in the topic", {{"x", "1"}});
  store(event);
  EXPECT_THAT(client.stored(kGlobal).ids, ElementsAre(hex_of(event)));
  EXPECT_THAT(client.stored(by(alice)).ids, ElementsAre(hex_of(event)));
  EXPECT_THAT(client.stored(by(alice, R"(,"#x":["1"])")).ids, ElementsAre(hex_of(event)));
  EXPECT_THAT(client.stored(by(alice, R"(,"#x":["2"])")).ids, IsEmpty());
}

TEST_F(OwnKeysTest, OtherFiltersWithoutATopicAreRefused) {
  const auto mixed = fmt::format(R"({{"authors":["{}","{}"]}})", hex_of(alice), hex_of(bob));
  for (const auto& filter :
       {by(bob), mixed, std::string(R"({"kinds":[1]})"), std::string(R"({"authors":[]})"),
        by(alice, R"(,"seq_after":0)"), by(alice) + "," + by(bob)}) {
    EXPECT_EQ(client.stored(filter).closed, "invalid: #t required") << filter;
    EXPECT_EQ(count_of(filter), R"(["CLOSED","c","invalid: #t required"])") << filter;
  }
  EXPECT_EQ(neg_of(mixed), R"(["NEG-ERR","n","invalid: #t required"])");
}

TEST_F(OwnKeysTest, TheirNewestVersionAloneIsFoundAndNothingOfTheOldOnesIsLeft) {
  const auto version = [&](int n) {
    return note(alice, std::to_string(n), {{"d", "x"}}, 30'000, unix_now() - 10 + n);
  };
  for (int n = 0; n < 3; ++n) store(version(n));
  const auto found = client.stored(by(alice)).events;
  EXPECT_THAT(found, ElementsAre(HasSubstr(R"("content":"2")")));
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_tags WHERE name = '.'"), "1");
  store(deletion_of(alice, {{"a", fmt::format("30000:{}:x", hex_of(alice))}}));
  EXPECT_THAT(client.stored(by(alice, R"(,"kinds":[30000])")).ids, IsEmpty());
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_tags g WHERE name = '.' AND NOT EXISTS "
                      "(SELECT FROM cn_relay.effective_events e WHERE e.event_id = g.event_id)"),
            "0");
}

TEST_F(OwnKeysTest, NewKeysAreKnownWhileTheRelayRunsAndWithdrawnOnesStayKnown) {
  EXPECT_EQ(client.stored(by(bob)).closed, "invalid: #t required");
  add_key(bob, "labels");
  ASSERT_TRUE(rig.await_metric("todoke_node_keys", 2));
  const auto event = plain(bob, "a label");
  EXPECT_EQ(client.request("live", by(bob)).closed, "");
  store(event);
  EXPECT_EQ(client.live("live"), event.json());
  rig.sql("UPDATE cn_bootstrap.keys SET withdrawn_at = now() WHERE algorithm = 'labels'");
  EXPECT_THAT(client.stored(by(bob)).ids, ElementsAre(hex_of(event)));
  const auto both = fmt::format(R"({{"authors":["{}","{}"]}})", hex_of(alice), hex_of(bob));
  EXPECT_THAT(client.stored(both).ids, ElementsAre(hex_of(event)));
}

TEST_F(OwnKeysTest, TheirOtherRulesHold) {
  EXPECT_EQ(refusal_of(note(alice, "", {}, 30'000)), "invalid: missing d");
  EXPECT_EQ(refusal_of(plain(alice, "", {{"scope", "friend"}})), "invalid: missing epoch");
}

}  // namespace
}  // namespace todoke::test
