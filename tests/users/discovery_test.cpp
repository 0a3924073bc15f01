// Search, trends and suggestions over what the relay has stored; reports that go to it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/nostr_client.hpp"
#include "users/rig.hpp"

namespace todoke::test {
namespace {

using nostr::Event;
using testing::HasSubstr;

class DiscoveryTest : public testing::Test {
 protected:
  DiscoveryTest() { rig.subscribe(token, kTopicA); }

  Event store(const SecretKey& key, const std::string& content,
              std::vector<std::vector<std::string>> tags = {}, nostr::Kind kind = 1) {
    tags.push_back({"t", kTopicA});
    const auto event = note(key, content, std::move(tags), kind);
    OkAnswer ok;
    // The relay hears of the topic a moment after the approval.
    EXPECT_TRUE(await([&] {
      ok = client.publish(event);
      return ok.accepted;
    })) << ok.text;
    return event;
  }
  void await_index() const {
    rig.await_sql(
        "SELECT last_seq >= (SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox) "
        "FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'",
        {"t"});
  }
  [[nodiscard]] RawResponse search(const std::string& more, const std::string& headers = "") const {
    return rig.get(fmt::format("/search?topic={}{}", kTopicA, more), token + headers);
  }
  [[nodiscard]] RawResponse report(const Event& event) const {
    return rig.post("/reports", fmt::format(R"({{"event":{}}})", event.json()), token);
  }
  [[nodiscard]] Event report_of(const SecretKey& key, const Event& target) const {
    const auto about = fmt::format("event:{}", target.id().hex());
    return note(
        key, "",
        {{"t", kTopicA}, {"k", "kukuri"}, {"ver", "1"}, {"d", about}, {"target", about}, {"reason", "spam"}},
        nostr::kReport);
  }

  UsersRig rig{{{"users.trending_interval", "1s"}}, {"relay", "index", "users"}};
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
  std::string token = rig.log_in(alice);
  NostrClient client{rig.url()};
};

TEST_F(DiscoveryTest, ASearchFindsPostsOfTheTopicWithTheirScores) {
  const auto fox = store(bob, "the quick brown fox");
  store(bob, "a lazy dog");
  await_index();
  const auto found = search("&q=fox");
  ASSERT_EQ(found.status, 200) << found.body;
  EXPECT_EQ(member(found.body, "items.0.event.id"), fox.id().hex());
  EXPECT_EQ(member(found.body, "items.1"), "null");
  EXPECT_GT(std::stod(member(found.body, "items.0.score")), 0);
  EXPECT_EQ(member(found.body, "next_cursor"), "null");
}

TEST_F(DiscoveryTest, PagesOfASearchReachEverythingOnce) {
  std::vector<std::string> stored;
  for (int i = 0; i < 3; ++i) stored.push_back(store(bob, fmt::format("fox {}", i)).id().hex());
  await_index();
  std::vector<std::string> found;
  std::string cursor;
  for (int i = 0; i < 10 && cursor != "null"; ++i) {
    const auto page = search("&q=fox&limit=1" + (cursor.empty() ? "" : "&cursor=" + cursor)).body;
    if (const auto id = member(page, "items.0.event.id"); id != "null") found.push_back(id);
    cursor = member(page, "next_cursor");
  }
  EXPECT_EQ(cursor, "null");
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(stored));
  EXPECT_EQ(member(search("&q=fox&cursor=abc").body, "details.field"), "cursor");
  EXPECT_EQ(member(search("&limit=101").body, "details.field"), "limit");
}

TEST_F(DiscoveryTest, ASearchNeedsTheSubscriptionThatOpensIt) {
  EXPECT_EQ(code(rig.get("/search?topic=" + kTopicB, token)), "403 SUBSCRIPTION_REQUIRED");
  rig.sql("UPDATE cn_user.topic_subscriptions SET services = '{trust}'");
  EXPECT_EQ(code(search("")), "403 SUBSCRIPTION_REQUIRED");
  rig.sql("UPDATE cn_user.topic_subscriptions SET services = '{index}', status = 'paused'");
  EXPECT_EQ(code(search("")), "403 SUBSCRIPTION_REQUIRED");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.usage_counters_daily"), "0");
  EXPECT_EQ(code(rig.get("/search?topic=fox", token)), "422 VALIDATION_ERROR");
}

TEST_F(DiscoveryTest, ARequestIsCountedOnceForItsIdAndContent) {
  rig.sql("UPDATE cn_user.plan_limits SET value = 2 WHERE metric = 'index.search_requests'");
  const std::string same = "X-Request-Id: once\r\n";
  EXPECT_EQ(search("&q=fox", same).status, 200);
  EXPECT_EQ(search("&q=fox", same).status, 200);
  EXPECT_EQ(search("&q=dog", same).status, 200);
  const auto refused = search("&q=fox");
  EXPECT_EQ(code(refused), "402 QUOTA_EXCEEDED");
  EXPECT_EQ(member(refused.body, "details.metric"), "index.search_requests");
  EXPECT_EQ(member(refused.body, "details.current"), "2");
  EXPECT_EQ(member(refused.body, "details.limit"), "2");
  EXPECT_THAT(member(refused.body, "details.reset_at"), HasSubstr("T00:00:00.000000Z"));
  EXPECT_EQ(search("&q=fox", same).status, 200);
}

TEST_F(DiscoveryTest, WhatIsAnsweredAndLikedIsTrending) {
  const auto quiet = store(bob, "quiet");
  const auto loud = store(bob, "loud");
  const auto carol = SecretKey::generate();
  store(carol, "I think so", {{"e", loud.id().hex(), "", "root"}});
  store(carol, "once more", {{"e", loud.id().hex(), "", "root"}});
  store(alice, "+", {{"e", loud.id().hex()}}, 7);
  store(alice, "-", {{"e", quiet.id().hex()}}, 7);
  store(carol, "", {{"e", loud.id().hex()}}, 6);
  std::string told;
  EXPECT_TRUE(await([&] {
    told = rig.get("/trending?topic=" + kTopicA, token + "X-Request-Id: same\r\n").body;
    return told.find(loud.id().hex()) != std::string::npos && member(told, "items.0.reposts") == "1";
  })) << told;
  EXPECT_EQ(member(told, "items.0.event.id"), loud.id().hex());
  EXPECT_EQ(member(told, "items.0.replies"), "1");
  EXPECT_EQ(member(told, "items.0.reactions"), "1");
  EXPECT_EQ(member(told, "items.1"), "null");
  EXPECT_EQ(
      rig.value("SELECT used FROM cn_user.usage_counters_daily WHERE metric = 'index.trending_requests'"),
      "1");
  EXPECT_EQ(code(rig.get("/trending?topic=" + kTopicB, token)), "403 SUBSCRIPTION_REQUIRED");
}

TEST_F(DiscoveryTest, TopicsAreSuggestedByNameAndByWhereContactsWrite) {
  rig.sql(
      fmt::format("UPDATE cn_relay.node_subscriptions SET name = 'Bitcoin' WHERE topic_id = '{}';"
                  "INSERT INTO cn_relay.node_subscriptions (topic_id, name) VALUES ('{}', 'Bitcoin cash')",
                  kTopicA, kTopicB));
  store(bob, "hello");
  store(alice, "", {{"p", bob.pubkey().hex()}}, 3);
  const auto by_name = rig.get("/communities/suggest?q=BITcoin", token).body;
  EXPECT_EQ(member(by_name, "items.0.topic_id"), kTopicA);
  EXPECT_EQ(member(by_name, "items.0.contacts"), "1");
  EXPECT_EQ(member(by_name, "items.0.is_subscribed"), "true");
  EXPECT_EQ(member(by_name, "items.1.topic_id"), kTopicB);
  EXPECT_EQ(member(rig.get("/communities/suggest", token).body, "items.0.topic_id"), kTopicA);
  rig.sql(fmt::format("INSERT INTO cn_relay.blocks (kind, value) VALUES ('topic', '{}')", kTopicB));
  EXPECT_EQ(member(rig.get("/communities/suggest?q=cash", token).body, "items"), "[]");
}

TEST_F(DiscoveryTest, AReportGoesTheWayOfAnEvent) {
  const auto spam = store(bob, "buy this");
  const auto mine = report_of(alice, spam);
  EXPECT_EQ(report(mine).body, fmt::format(R"({{"event_id":"{}","status":"stored"}})", mine.id().hex()));
  EXPECT_EQ(member(report(mine).body, "status"), "duplicate");
  EXPECT_EQ(
      rig.value(fmt::format("SELECT source FROM cn_relay.events WHERE event_id = '{}'", mine.id().hex())),
      "api");
  EXPECT_EQ(member(report(report_of(bob, spam)).body, "details.field"), "event");
  const auto aimless =
      note(alice, "", {{"t", kTopicA}, {"k", "kukuri"}, {"ver", "1"}, {"d", "x"}}, nostr::kReport);
  EXPECT_EQ(code(report(aimless)), "422 EVENT_REFUSED");
  EXPECT_EQ(code(report(note(alice, "", {{"t", kTopicA}}))), "422 VALIDATION_ERROR");
  rig.sql("UPDATE cn_user.plan_limits SET value = 1 WHERE metric = 'moderation.report_submits'");
  EXPECT_EQ(code(report(report_of(alice, mine))), "402 QUOTA_EXCEEDED");
}

TEST_F(DiscoveryTest, WhatThisNodeHasNoSourceForIsNotAvailable) {
  const auto key = alice.pubkey().hex();
  EXPECT_EQ(code(rig.get("/labels?target=pubkey:" + key, token)), "503 NOT_AVAILABLE");
  EXPECT_EQ(code(rig.get("/trust/report-based?subject=" + key, token)), "503 NOT_AVAILABLE");
  EXPECT_EQ(code(rig.get("/trust/communication-density?subject=" + key, token)), "503 NOT_AVAILABLE");
  EXPECT_EQ(code(rig.get("/labels?target=topic:" + key, token)), "422 VALIDATION_ERROR");
}

}  // namespace
}  // namespace todoke::test
