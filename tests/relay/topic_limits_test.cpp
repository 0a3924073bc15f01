// What the ingest_policy of a topic says of its events: how old, how many, how large. Wire and tables.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr const char* kCapacity = "restricted: capacity";

class TopicLimitsTest : public TopicsTest {
 protected:
  // Sets the policy and waits until the relay follows it: topics are read once for every change.
  void set_policy(const std::string& topic_id, const std::string& policy) {
    rig.sql(fmt::format("UPDATE cn_relay.node_subscriptions SET ingest_policy = '{}' WHERE topic_id = '{}'",
                        policy, topic_id));
    const auto marker = topic('f');
    rig.sql(fmt::format("DELETE FROM cn_relay.node_subscriptions WHERE topic_id = '{}'", marker));
    ASSERT_TRUE(await([&] { return !client.stored(of(marker)).closed.empty(); }));
    enable_topic(rig, marker);
  }
  static std::string of(const std::string& topic_id) { return fmt::format(R"({{"#t":["{}"]}})", topic_id); }
  [[nodiscard]] std::string topics_of(const Event& event) const {
    return rig.value(fmt::format(
        "SELECT coalesce(string_agg(topic_id, ',' ORDER BY topic_id), '') FROM cn_relay.event_topics "
        "WHERE event_id = '{}'",
        hex_of(event)));
  }
  Event in(const std::string& topic_id, const std::string& content) {
    return note(alice, content, {{"t", topic_id}});
  }

  const std::string limited = topic('1');
};

TEST_F(TopicLimitsTest, AnEventThatIsTooOldForATopicIsStoredForTheOthersOnly) {
  enable_topic(rig, limited);
  set_policy(limited, R"({"max_delay_seconds":600})");
  const auto now = unix_now();
  store(note(alice, "in time", {{"t", limited}}, 1, now - 500));
  EXPECT_EQ(refusal_of(note(alice, "too old", {{"t", limited}}, 1, now - 700)),
            "restricted: created_at too old for the topic");
  const auto both = note(alice, "of two topics", {{"t", limited}, {"t", "kukuri:global"}}, 1, now - 700);
  store(both);
  EXPECT_EQ(topics_of(both), "kukuri:global");
}

TEST_F(TopicLimitsTest, AFullTopicTakesNothingMoreAndAffectsItselfAlone) {
  enable_topic(rig, limited);
  set_policy(limited, R"({"max_events":3})");
  const auto first = in(limited, "1");
  store(first);
  store(in(limited, "2"));
  store(in(limited, "3"));
  EXPECT_EQ(refusal_of(in(limited, "4")), kCapacity);
  const auto both = global_note(alice, "of two topics", {{"t", limited}});
  store(both);
  EXPECT_EQ(topics_of(both), "kukuri:global");
  EXPECT_EQ(client.publish(first).text, "duplicate: already stored");
  EXPECT_EQ(rig.metric(R"(todoke_ingest_rejected_total{reason="capacity"})"), 1);
  set_policy(limited, R"({"max_events":4})");
  store(in(limited, "room for one"));
  EXPECT_EQ(refusal_of(in(limited, "5")), kCapacity);
}

TEST_F(TopicLimitsTest, NotOneEventGoesBeyondTheLimitHoweverManyComeAtOnce) {
  enable_topic(rig, limited);
  set_policy(limited, R"({"max_events":50})");
  std::vector<Event> events;
  for (int i = 0; i < 300; ++i) events.push_back(in(limited, std::to_string(i)));
  for (const auto& event : events) client.send(fmt::format(R"(["EVENT",{}])", event.json()));
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto answer = parse_ok(client.receive());
    accepted += answer.accepted ? 1U : 0U;
    if (!answer.accepted) {
      EXPECT_EQ(answer.text, kCapacity);
    }
  }
  EXPECT_EQ(accepted, 50U);
  EXPECT_EQ(
      rig.value(fmt::format("SELECT count(*) FROM cn_relay.event_topics WHERE topic_id = '{}'", limited)),
      "50");
}

TEST_F(TopicLimitsTest, BytesAreLimitedTooAsTheDatabaseCountsThem) {
  enable_topic(rig, limited);
  set_policy(limited, R"({"max_bytes":100000})");
  store(in(limited, std::string(2'000, 'x')));
  const auto counted =
      rig.value(fmt::format("SELECT bytes FROM cn_relay.topic_usage WHERE topic_id = '{}'", limited));
  // Room for exactly one more of the same size.
  set_policy(limited, fmt::format(R"({{"max_bytes":{}}})", 2 * std::stol(counted)));
  EXPECT_EQ(refusal_of(in(limited, std::string(2'001, 'y'))), kCapacity);
  store(in(limited, std::string(2'000, 'z')));
  EXPECT_EQ(refusal_of(in(limited, "")), kCapacity);
}

TEST_F(TopicLimitsTest, TextThatPostgresCantHoldIsCountedAsItIsStored) {
  enable_topic(rig, limited);
  set_policy(limited, R"({"max_bytes":100000})");
  const std::string nuls(500, '\0');
  store(in(limited, nuls));
  const auto counted =
      rig.value(fmt::format("SELECT bytes FROM cn_relay.topic_usage WHERE topic_id = '{}'", limited));
  // A byte less than a second one takes.
  set_policy(limited, fmt::format(R"({{"max_bytes":{}}})", 2 * std::stol(counted) - 1));
  EXPECT_EQ(refusal_of(in(limited, nuls + "x")), kCapacity);
  auto shorter = nuls;
  shorter.back() = 'x';
  store(in(limited, shorter));
}

TEST_F(TopicLimitsTest, NoTopicIsAddedWhileTheBacklogPressesAsHardAsItCan) {
  enable_topic(rig, limited);
  rig.press(3);
  const auto added = topic('2');
  rig.sql(
      fmt::format("INSERT INTO cn_relay.node_subscriptions (topic_id, ref_count) VALUES ('{}', 1)", added));
  ASSERT_TRUE(rig.await_metric("todoke_topics_held", 1));
  EXPECT_EQ(refusal_of(in(added, "1")), "restricted: topic not enabled");
  store(in(limited, "a topic that was there before"));
  EXPECT_EQ(rig.value("SELECT bool_and(enabled) FROM cn_relay.node_subscriptions"), "t");
  rig.press(0);
  ASSERT_TRUE(rig.await_metric("todoke_topics_held", 0));
  store(in(added, "2"));
}

TEST_F(TopicLimitsTest, ALimitHoldsAfterARestart) {
  enable_topic(rig, limited);
  set_policy(limited, R"({"max_events":2})");
  const auto first = in(limited, "1");
  store(first);
  store(in(limited, "2"));
  rig.stop();
  rig.start();
  NostrClient again(rig.url());
  EXPECT_EQ(again.publish(in(limited, "3")).text, kCapacity);
  EXPECT_EQ(again.publish(first).text, "duplicate: already stored");
}

}  // namespace
}  // namespace todoke::test
