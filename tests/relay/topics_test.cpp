// Which topics are taken and served, and how that changes while the relay runs.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

// An ingest_policy that leaves alone what is stored already.
constexpr std::string_view kNothingOld = R"({"allow_backfill":false})";

class TopicPolicyTest : public TopicsTest {
 protected:
  static std::string of(const std::string& topic_id) { return fmt::format(R"({{"#t":["{}"]}})", topic_id); }
  Rows links_of(const Event& event) {
    return rig.sql(fmt::format(
        "SELECT topic_id FROM cn_relay.event_topics WHERE event_id = '{}' ORDER BY topic_id", hex_of(event)));
  }
};

TEST_F(TopicPolicyTest, NewNodeTakesTheGlobalTopicOnly) {
  EXPECT_EQ(
      rig.sql("SELECT topic_id, enabled, pinned, ref_count, ingest_policy FROM cn_relay.node_subscriptions"),
      Rows{"kukuri:global|t|t|0|{}"});
  store(global_note(alice, "welcome"));
}

TEST_F(TopicPolicyTest, HashtagIsNoTopic) {
  EXPECT_EQ(refusal_of(note(alice, "", {})), "invalid: missing topic");
  const auto hex = std::string(64, 'a');
  for (const auto& tag :
       {std::string("bitcoin"), std::string(""), std::string("KUKURI:global"), "kukuri:" + hex + "a",
        "kukuri:" + hex.substr(1), "kukuri:" + std::string(64, 'A'), "kukuri:user:" + hex.substr(1),
        std::string("kukuri:"), std::string("kukuri:local"), "x:" + hex}) {
    EXPECT_EQ(refusal_of(note(alice, "", {{"t", tag}})), "invalid: missing topic") << tag;
    EXPECT_EQ(client.stored(of(tag)).closed, "restricted: topic not enabled") << tag;
  }
  // Only the first value of a tag counts, and only of `t`.
  EXPECT_EQ(refusal_of(note(alice, "", {{"t", "x", "kukuri:global"}, {"T", "kukuri:global"}, {"t"}})),
            "invalid: missing topic");
  const auto event = global_note(alice, "", {{"t", "bitcoin"}});
  store(event);
  EXPECT_EQ(links_of(event), Rows{"kukuri:global"});
  EXPECT_EQ(log_of(event), Rows{"upsert|kukuri:global|"});
}

TEST_F(TopicPolicyTest, OtherTopicsAreRestricted) {
  const auto other = topic('a');
  EXPECT_EQ(refusal_of(note(alice, "", {{"t", other}})), "restricted: topic not enabled");
  EXPECT_EQ(client.stored(of(other)).closed, "restricted: topic not enabled");
  EXPECT_EQ(client.count("c", of(other)), R"(["CLOSED","c","restricted: topic not enabled"])");
  // Every value counts.
  EXPECT_EQ(client.stored(fmt::format(R"({{"#t":["kukuri:global","{}"]}})", other)).closed,
            "restricted: topic not enabled");
  EXPECT_EQ(client.stored(kGlobal + ("," + of(other))).closed, "restricted: topic not enabled");
}

TEST_F(TopicPolicyTest, EveryFilterNeedsATopic) {
  EXPECT_EQ(client.stored("{}").closed, "invalid: #t required");
  EXPECT_EQ(client.stored(R"({"kinds":[1],"limit":1})").closed, "invalid: #t required");
  EXPECT_EQ(client.stored(std::string(kGlobal) + R"(,{"kinds":[1]})").closed, "invalid: #t required");
  EXPECT_EQ(client.count("c", "{}"), R"(["CLOSED","c","invalid: #t required"])");
  EXPECT_EQ(client.stored(R"({"#t":[]})").closed, "invalid: #t required");
}

TEST_F(TopicPolicyTest, TopicsOfUsersAndReservedOnesAreTopics) {
  const auto of_user = "kukuri:user:" + hex_of(alice);
  enable_topic(rig, of_user);
  store(note(alice, "", {{"t", of_user}}));

  RelayRig reserving(Flags{{"topics.reserved", "lobby,kukuri:v2:lobby"}});
  enable_topic(reserving, "lobby");
  NostrClient there(reserving.url());
  const auto event = note(alice, "", {{"t", "lobby"}});
  store_at(there, event);
  EXPECT_THAT(there.stored(of("lobby")).ids, ElementsAre(hex_of(event)));
  EXPECT_EQ(there.publish(note(alice, "", {{"t", "kukuri:v2:lobby"}})).text, "restricted: topic not enabled");
  EXPECT_EQ(there.publish(note(alice, "", {{"t", "hall"}})).text, "invalid: missing topic");
}

TEST_F(TopicPolicyTest, EventIsLinkedAndLoggedForItsEnabledTopicsOnly) {
  const auto enabled = topic('1');
  const auto other = topic('2');
  enable_topic(rig, enabled);
  const auto event = global_note(alice, "", {{"t", other}, {"t", enabled}, {"t", enabled}});
  store(event);
  EXPECT_EQ(links_of(event), Rows({enabled, "kukuri:global"}));
  EXPECT_EQ(log_of(event), Rows({fmt::format("upsert|{}|", enabled), "upsert|kukuri:global|"}));
  EXPECT_THAT(client.stored(of(enabled)).events, ElementsAre(std::string(event.json())));
  // Asked for by both it comes once and counts once.
  const auto both = fmt::format(R"({{"#t":["kukuri:global","{}"]}})", enabled);
  EXPECT_THAT(client.stored(both).ids, ElementsAre(hex_of(event)));
  EXPECT_EQ(client.count("c", both), R"(["COUNT","c",{"count":1}])");
  EXPECT_EQ(client.count("c", kGlobal + ("," + of(enabled))), R"(["COUNT","c",{"count":1}])");
  // A topic that is enabled later and takes nothing old does not get it afterwards.
  enable_topic(rig, other, kNothingOld);
  EXPECT_EQ(client.count("c", of(other)), R"(["COUNT","c",{"count":0}])");
  EXPECT_THAT(client.stored(of(other)).ids, IsEmpty());
}

TEST_F(TopicPolicyTest, FilterWithTopicAndTagFindsOnlyWhatIsLinked) {
  const auto other = topic('2');
  const auto event = global_note(alice, "", {{"t", other}, {"x", "1"}});
  store(event);
  enable_topic(rig, other, kNothingOld);
  EXPECT_THAT(client.stored(fmt::format(R"({{"#t":["{}"],"#x":["1"]}})", other)).ids, IsEmpty());
  EXPECT_THAT(client.stored(fmt::format(R"({{"#t":["{}"],"ids":["{}"]}})", other, hex_of(event))).ids,
              IsEmpty());
}

TEST_F(TopicPolicyTest, ChangesTakeEffectWhileTheRelayRuns) {
  const auto other = topic('3');
  enable_topic(rig, other);
  const auto event = note(alice, "", {{"t", other}});
  store(event);
  client.request("both", kGlobal + ("," + of(other)));
  client.request("other", of(other));
  client.request("global", kGlobal);

  rig.sql(fmt::format("UPDATE cn_relay.node_subscriptions SET enabled = false WHERE topic_id = '{}'", other));
  const std::vector<std::string> closed = {client.receive(), client.receive()};
  EXPECT_THAT(closed, testing::UnorderedElementsAre(R"(["CLOSED","both","restricted: topic not enabled"])",
                                                    R"(["CLOSED","other","restricted: topic not enabled"])"));
  EXPECT_EQ(refusal_of(note(alice, "again", {{"t", other}})), "restricted: topic not enabled");
  EXPECT_EQ(client.stored(of(other)).closed, "restricted: topic not enabled");
  const auto global = global_note(alice, "");
  store(global);
  EXPECT_EQ(client.receive(), fmt::format(R"(["EVENT","global",{}])", global.json()));

  rig.sql(fmt::format("UPDATE cn_relay.node_subscriptions SET enabled = true WHERE topic_id = '{}'", other));
  ASSERT_TRUE(await([&] { return client.stored(of(other)).closed.empty(); }));
  EXPECT_THAT(client.stored(of(other)).ids, ElementsAre(hex_of(event)));
  rig.sql(fmt::format("DELETE FROM cn_relay.node_subscriptions WHERE topic_id = '{}'", other));
  ASSERT_TRUE(await([&] { return !client.stored(of(other)).closed.empty(); }));
}

TEST_F(TopicPolicyTest, AnyTopicCanBeAccepted) {
  const RelayRig any(Flags{{"relay.accept_topics", "any"}});
  NostrClient there(any.url());
  const auto other = topic('4');
  const auto event = note(alice, "", {{"t", other}, {"t", topic('5')}, {"t", "hashtag"}});
  there.request("live", of(topic('5')));
  store_at(there, event);
  EXPECT_EQ(there.live("live"), event.json());
  EXPECT_THAT(there.stored(of(other)).ids, ElementsAre(hex_of(event)));
  EXPECT_EQ(any.sql("SELECT topic_id FROM cn_relay.events_outbox ORDER BY seq"), Rows({other, topic('5')}));
  EXPECT_EQ(there.publish(note(alice, "", {{"t", "hashtag"}})).text, "invalid: missing topic");
  EXPECT_EQ(there.stored(of("hashtag")).closed, "restricted: topic not enabled");
}

TEST_F(TopicPolicyTest, EnabledFollowsTheCountUnlessPinned) {
  const auto state = [&](const std::string& id) {
    return rig.value("SELECT enabled, pinned, ref_count FROM cn_relay.node_subscriptions WHERE topic_id = '" +
                     id + "'");
  };
  const auto set = [&](const std::string& id, const std::string& what) {
    rig.sql("UPDATE cn_relay.node_subscriptions SET " + what + " WHERE topic_id = '" + id + "'");
  };
  rig.sql("INSERT INTO cn_relay.node_subscriptions (topic_id, ref_count) VALUES ('counted', 1)");
  EXPECT_EQ(state("counted"), "t|f|1");
  set("counted", "ref_count = ref_count + 1");
  set("counted", "ref_count = ref_count - 2");
  EXPECT_EQ(state("counted"), "f|f|0");
  set("counted", "ref_count = 1");
  EXPECT_EQ(state("counted"), "t|f|1");
  set("kukuri:global", "ref_count = 3");
  set("kukuri:global", "ref_count = 0");
  EXPECT_EQ(state("kukuri:global"), "t|t|0");
  EXPECT_THROW(set("counted", "ref_count = -1"), std::runtime_error);
}

TEST_F(TopicPolicyTest, IngestPolicyIsChecked) {
  const auto problem = [&](const std::string& policy) -> std::string {
    try {
      rig.sql("UPDATE cn_relay.node_subscriptions SET ingest_policy = '" + policy + "'");
      return "";
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(problem(R"({"retention_days":7,"max_events":1000,"max_bytes":1048576,"max_delay_seconds":5,
                        "allow_backfill":false,"priority":"high","when_full":"drop_oldest"})"),
            "");
  EXPECT_EQ(problem("{}"), "");
  EXPECT_THAT(problem(R"({"retention":7})"),
              HasSubstr("ingest_policy of kukuri:global: unknown key retention"));
  EXPECT_THAT(problem(R"({"retention_days":0})"),
              HasSubstr("retention_days must be a number of days from 1 to 36500"));
  EXPECT_THAT(problem(R"({"max_events":"many"})"), HasSubstr("max_events must be a positive integer"));
  EXPECT_THAT(problem(R"({"max_bytes":1.5})"), HasSubstr("max_bytes must be a positive integer"));
  EXPECT_THAT(problem(R"({"allow_backfill":1})"), HasSubstr("allow_backfill must be true or false"));
  EXPECT_THAT(problem(R"({"priority":"urgent"})"), HasSubstr("priority must be low, normal or high"));
  EXPECT_THAT(problem(R"({"when_full":"panic"})"), HasSubstr("when_full must be refuse or drop_oldest"));
  EXPECT_THAT(problem("[]"), HasSubstr("ingest_policy must be an object"));
}

TEST_F(TopicPolicyTest, LowPriorityIsHeldUnderPressure) {
  const auto low = topic('6');
  enable_topic(rig, low);
  rig.sql(fmt::format(R"(UPDATE cn_relay.node_subscriptions SET ingest_policy = '{{"priority":"low"}}'
                         WHERE topic_id = '{}')",
                      low));
  rig.press(2);
  ASSERT_TRUE(
      await([&] { return client.publish(note(alice, "", {{"t", low}})).text == "restricted: capacity"; }));
  store(global_note(alice, "", {{"t", low}}));
  rig.press(0);
  store(note(alice, "again", {{"t", low}}));
}

class OpenPolicyTest : public testing::Test {
 protected:
  void store(const Event& event) { store_at(client, event); }
  Ids found(const std::string& filter) { return client.stored(filter).ids; }
  std::string count(const std::string& filter) { return client.count("c", filter); }

  RelayRig rig{kOpen};
  NostrClient client{rig.url()};
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

TEST_F(OpenPolicyTest, TakesAndServesWithoutTopics) {
  const auto a = note(alice, "", {{"p", hex_of(bob)}}, 1, kTime);
  const auto b = note(bob, "", {}, 7, kTime - 1);
  const auto c = note(bob, "", {{"t", "bitcoin"}}, 1, kTime - 2);
  for (const auto* event : {&a, &b, &c}) store(*event);
  EXPECT_EQ(found("{}"), hexes_of({a, b, c}));
  EXPECT_EQ(found(R"({"limit":2})"), hexes_of({a, b}));
  EXPECT_EQ(found(R"({"kinds":[1]})"), hexes_of({a, c}));
  EXPECT_EQ(found(fmt::format(R"({{"authors":["{}"]}})", hex_of(bob))), hexes_of({b, c}));
  EXPECT_EQ(found(fmt::format(R"({{"authors":["{}"],"kinds":[7,8]}})", hex_of(bob))), hexes_of({b}));
  EXPECT_EQ(found(fmt::format(R"({{"since":{},"until":{}}})", kTime - 1, kTime - 1)), hexes_of({b}));
  EXPECT_EQ(found(fmt::format(R"({{"#p":["{}"]}})", hex_of(bob))), hexes_of({a}));
  EXPECT_EQ(found(fmt::format(R"({{"ids":["{}"]}})", hex_of(c))), hexes_of({c}));
  EXPECT_EQ(found(R"({"#t":["bitcoin"]})"), hexes_of({c}));
  EXPECT_EQ(count("{}"), R"(["COUNT","c",{"count":3}])");
  EXPECT_EQ(count(R"({"kinds":[1]})"), R"(["COUNT","c",{"count":2}])");
  EXPECT_EQ(count(R"({"#t":["bitcoin"]},{"kinds":[7]})"), R"(["COUNT","c",{"count":2}])");
}

TEST_F(OpenPolicyTest, EventWithoutATopicIsLinkedToTheGlobalOneButFoundByItsTagsOnly) {
  const auto plain = note(alice, "", {}, 1, kTime);
  const auto tagged = note(alice, "", {{"t", "kukuri:global"}}, 1, kTime - 1);
  const auto hashtag = note(alice, "", {{"t", "bitcoin"}}, 1, kTime - 2);
  const auto elsewhere = note(alice, "", {{"t", topic('7')}}, 1, kTime - 3);  // a topic that is not enabled
  for (const auto* event : {&plain, &tagged, &hashtag, &elsewhere}) store(*event);
  EXPECT_EQ(rig.sql("SELECT topic_id, count(*) FROM cn_relay.event_topics GROUP BY 1"),
            Rows{"kukuri:global|4"});
  EXPECT_EQ(rig.sql("SELECT topic_id, count(*) FROM cn_relay.events_outbox GROUP BY 1"),
            Rows{"kukuri:global|4"});
  EXPECT_EQ(found(kGlobal), hexes_of({tagged}));
  EXPECT_EQ(count(kGlobal), R"(["COUNT","c",{"count":1}])");
  EXPECT_EQ(found(R"({"#t":["bitcoin","kukuri:global"]})"), hexes_of({tagged, hashtag}));
  EXPECT_EQ(found(fmt::format(R"({{"#t":["{}"]}})", topic('7'))), hexes_of({elsewhere}));
  EXPECT_EQ(found(R"({"#t":["bitcoin"],"seq_after":0})"), hexes_of({hashtag}));
}

TEST_F(OpenPolicyTest, LiveDeliveryLooksAtTagsOnly) {
  client.request("global", kGlobal);
  client.request("hashtag", R"({"#t":["bitcoin"]})");
  client.request("all", "{}");
  store(note(alice, "no topic", {}));
  const auto tagged = note(alice, "", {{"t", "kukuri:global"}, {"t", "bitcoin"}});
  store(tagged);
  EXPECT_EQ(client.live("global"), tagged.json());
  EXPECT_EQ(client.live("hashtag"), tagged.json());
  client.live("all");
  EXPECT_EQ(client.live("all"), tagged.json());
}

TEST_F(OpenPolicyTest, EnabledTopicsAreLinkedByName) {
  rig.sql(fmt::format("INSERT INTO cn_relay.node_subscriptions (topic_id) VALUES ('{}')", topic('8')));
  ASSERT_TRUE(rig.await_metric("todoke_topics_enabled", 2));
  const auto event = note(alice, "", {{"t", topic('8')}});
  store(event);
  EXPECT_EQ(rig.sql("SELECT topic_id FROM cn_relay.events_outbox"), Rows{topic('8')});
  EXPECT_EQ(found(fmt::format(R"({{"#t":["{}"]}})", topic('8'))), hexes_of({event}));
}

TEST_F(OpenPolicyTest, KindsOfTheNetworkAreHeldToTheirFormOnlyWhenTheySaySo) {
  store(note(alice, "", {{"d", "x"}}, 39000));
  EXPECT_EQ(client.publish(note(alice, "", {{"d", "x"}, {"k", "kukuri"}}, 39000)).text,
            "invalid: ver must be 1");
  EXPECT_EQ(client.publish(note(alice, "", {}, 39020)).text, "restricted: p2p only");
}

}  // namespace
}  // namespace todoke::test
