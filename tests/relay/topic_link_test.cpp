// Stored events that already name a topic when it is enabled: the background job topic.link.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class TopicLinkTest : public TopicsTest {
 protected:
  // Stored for kukuri:global, and naming the topic as well.
  Event both(const std::string& content, const std::string& other = topic('a')) {
    const auto event = note(alice, content, {{"t", "kukuri:global"}, {"t", other}});
    store(event);
    return event;
  }
  // Enables the topic and waits until its job has ended.
  void enable(const std::string& policy = "{}") {
    rig.sql(
        fmt::format("INSERT INTO cn_relay.node_subscriptions (topic_id, ref_count, ingest_policy) "
                    "VALUES ('{}', 1, '{}')",
                    topic('a'), policy));
    EXPECT_EQ(rig.await_sql("SELECT status FROM cn_admin.jobs WHERE kind = 'topic.link' AND subject = '" +
                                topic('a') + "'",
                            {"succeeded"}),
              Rows{"succeeded"});
    EXPECT_TRUE(await([&] { return client.stored(of_topic(R"("limit":0)")).closed.empty(); }));
  }
  static std::string of_topic(const std::string& more) {
    return fmt::format(R"({{"#t":["{}"],{}}})", topic('a'), more);
  }
  [[nodiscard]] std::string links() const {
    return rig.value(
        fmt::format("SELECT count(*) FROM cn_relay.event_topics WHERE topic_id = '{}'", topic('a')));
  }
};

TEST_F(TopicLinkTest, StoredEventsAreFoundByATopicThatIsEnabledLater) {
  const auto first = both("first");
  const auto second = both("second");
  const auto other = global_note(alice, "another");
  store(other);
  enable();
  EXPECT_THAT(client.stored(of_topic(R"("kinds":[1])")).ids,
              testing::UnorderedElementsAre(hex_of(first), hex_of(second)));
  EXPECT_EQ(client.count("c", of_topic(R"("kinds":[1])")), R"(["COUNT","c",{"count":2}])");
  EXPECT_THAT(log_of(first), ElementsAre("upsert|kukuri:global|", fmt::format("upsert|{}|", topic('a'))));
  EXPECT_EQ(rig.value(fmt::format("SELECT sum(events) FROM cn_relay.topic_usage WHERE topic_id = '{}'",
                                  topic('a'))),
            "2");
  EXPECT_EQ(rig.value("SELECT sum(events) FROM cn_relay.topic_usage WHERE topic_id = ''"), "3");
  // They stay in the topic that they were stored for, and a deletion takes them out of both.
  EXPECT_THAT(client.stored(by_id(first)).ids, ElementsAre(hex_of(first)));
  store(deletion_of(alice, {{"e", hex_of(first)}}));
  EXPECT_THAT(client.stored(of_topic(R"("kinds":[1])")).ids, ElementsAre(hex_of(second)));
  EXPECT_EQ(rig.value(fmt::format("SELECT count(*) FROM cn_relay.events_outbox WHERE op = 'delete' AND "
                                  "event_id = '{}'",
                                  hex_of(first))),
            "2");
}

TEST_F(TopicLinkTest, ThereAreMoreThanAPieceHolds) {
  for (int i = 0; i < 450; ++i) {
    client.send(
        fmt::format(R"(["EVENT",{}])",
                    note(alice, std::to_string(i), {{"t", "kukuri:global"}, {"t", topic('a')}}).json()));
  }
  for (int i = 0; i < 450; ++i) EXPECT_TRUE(parse_ok(client.receive(R"(["OK")")).accepted);
  enable();
  EXPECT_EQ(links(), "450");
  EXPECT_EQ(
      rig.value("SELECT result ->> 'linked' FROM cn_admin.jobs WHERE kind = 'topic.link' AND subject = '" +
                topic('a') + "'"),
      "450");
}

TEST_F(TopicLinkTest, WhatIsNotInEffectIsNotLinked) {
  const auto deleted = both("deleted");
  store(deletion_of(alice, {{"e", hex_of(deleted)}}));
  const auto version = [&](int n) {
    return note(alice, std::to_string(n), {{"t", "kukuri:global"}, {"t", topic('a')}, {"d", "x"}}, 30'000,
                unix_now() - 10 + n);
  };
  store(version(1));
  store(version(2));
  enable();
  EXPECT_EQ(links(), "1");
  EXPECT_EQ(rig.value("SELECT topics[2] FROM cn_relay.addressable_current"), topic('a'));
}

TEST_F(TopicLinkTest, AnotherTimeLinksNothingTwice) {
  both("once");
  enable();
  rig.sql(fmt::format("SELECT cn_admin.add_job('topic.link', '{}', '{{}}')", topic('a')));
  rig.await_sql("SELECT count(*) FROM cn_admin.jobs WHERE kind = 'topic.link' AND subject = '" + topic('a') +
                    "' AND status = 'succeeded'",
                {"2"});
  EXPECT_EQ(links(), "1");
  EXPECT_EQ(
      rig.value(fmt::format("SELECT count(*) FROM cn_relay.events_outbox WHERE topic_id = '{}'", topic('a'))),
      "1");
}

TEST_F(TopicLinkTest, ThePolicyOfTheTopicHolds) {
  for (int i = 0; i < 3; ++i) both(std::to_string(i));
  enable(R"({"max_events": 2})");
  EXPECT_EQ(links(), "2");
}

TEST_F(TopicLinkTest, ATopicWithoutBackfillGetsNothingOld) {
  both("old");
  enable(R"({"allow_backfill": false})");
  EXPECT_EQ(links(), "0");
}

TEST_F(TopicLinkTest, MemoryOfATopicFollows) {
  enable();
  both("known as the topic's own");
  // A window of the topic is in memory now, and complete.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.stored(of_topic(R"("kinds":[1])")).ids.size(), 1U);
  rig.sql(
      fmt::format("UPDATE cn_relay.node_subscriptions SET ref_count = 0 WHERE topic_id = '{}'", topic('a')));
  EXPECT_TRUE(await([&] { return !client.stored(of_topic(R"("limit":0)")).closed.empty(); }));
  const auto meanwhile = both("stored while it was disabled");
  rig.sql(
      fmt::format("UPDATE cn_relay.node_subscriptions SET ref_count = 1 WHERE topic_id = '{}'", topic('a')));
  EXPECT_TRUE(await([&] { return client.stored(of_topic(R"("kinds":[1])")).ids.size() == 2; }));
  EXPECT_THAT(client.stored(of_topic(R"("kinds":[1])")).ids, testing::Contains(hex_of(meanwhile)));
}

TEST_F(TopicLinkTest, ApprovedRequestsAreActiveWhenTheTopicIsTakenIn) {
  rig.sql(
      fmt::format("SELECT cn_user.request_topic('{0}', '{1}', NULL, ARRAY['index'], 5, 100, 'off', NULL);"
                  "SELECT cn_user.approve_request(request_id, NULL, 'test', 100) "
                  "FROM cn_user.topic_subscription_requests",
                  hex_of(bob), topic('a')));
  EXPECT_EQ(rig.await_sql("SELECT status FROM cn_user.topic_subscription_requests", {"active"}),
            Rows{"active"});
}

}  // namespace
}  // namespace todoke::test
