// Asking for topics, and the subscriptions that come of it.
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "base/sha256.hpp"
#include "users/rig.hpp"

namespace todoke::test {
namespace {

class UserTopicsTest : public testing::Test {
 protected:
  [[nodiscard]] RawResponse ask_for(const std::string& topic, const std::string& more = "") const {
    return rig.post("/topic-subscription-requests", fmt::format(R"({{"topic_id":"{}"{}}})", topic, more),
                    token);
  }
  [[nodiscard]] RawResponse change(const std::string& method, const std::string& path) const {
    return rig.ask(method, path, "", token + "Content-Length: 0\r\n");
  }
  [[nodiscard]] std::string topic_state(const std::string& topic) const {
    return rig.value(fmt::format(
        "SELECT enabled::text || ' ' || ref_count FROM cn_relay.node_subscriptions WHERE topic_id = '{}'",
        topic));
  }

  UsersRig rig;
  SecretKey alice = SecretKey::generate();
  std::string token = rig.log_in(alice);
};

TEST_F(UserTopicsTest, ARequestBecomesASubscriptionAndTheTopicFollows) {
  const auto asked = ask_for(kTopicA, R"(,"requested_services":["index"])");
  EXPECT_EQ(asked.status, 201);
  EXPECT_EQ(member(asked.body, "topic_id"), kTopicA);
  EXPECT_EQ(member(asked.body, "status"), "pending");
  const auto path = "/topic-subscription-requests/" + member(asked.body, "request_id");
  EXPECT_EQ(member(rig.get(path, token).body, "requested_services"), R"(["index"])");
  EXPECT_EQ(rig.approve(member(asked.body, "request_id")), "");
  EXPECT_EQ(member(rig.get(path, token).body, "status"), "approved");
  EXPECT_EQ(topic_state(kTopicA), "true 1");
  EXPECT_EQ(member(rig.get("/topic-subscriptions", token).body, "items.0.services"), R"(["index"])");
  EXPECT_EQ(member(change("POST", "/topic-subscriptions/" + kTopicA + "/pause").body, "status"), "paused");
  EXPECT_EQ(topic_state(kTopicA), "false 0");
  EXPECT_EQ(member(change("POST", "/topic-subscriptions/" + kTopicA + "/resume").body, "status"), "active");
  EXPECT_EQ(topic_state(kTopicA), "true 1");
  EXPECT_EQ(member(change("DELETE", "/topic-subscriptions/" + kTopicA).body, "status"), "ended");
  EXPECT_EQ(topic_state(kTopicA), "false 0");
  EXPECT_EQ(rig.get("/topic-subscriptions", token).body, R"({"items":[],"next_cursor":null})");
  EXPECT_EQ(member(rig.get("/topic-subscriptions?status=ended", token).body, "items.0.topic_id"), kTopicA);
  EXPECT_EQ(code(change("DELETE", "/topic-subscriptions/" + kTopicA)), "404 NOT_FOUND");
  EXPECT_EQ(ask_for(kTopicA).status, 201);
}

TEST_F(UserTopicsTest, ANameStandsForItsId) {
  const auto ask = [&](const std::string& name) {
    return rig.post("/topic-subscription-requests", fmt::format(R"({{"topic_name":"{}"}})", name), token);
  };
  const auto named = ask("Bitcoin");
  EXPECT_EQ(named.status, 201);
  EXPECT_THAT(member(named.body, "topic_id"), testing::MatchesRegex("kukuri:[0-9a-f]{64}"));
  EXPECT_EQ(code(ask("  bitcoin ")), "409 REQUEST_EXISTS");
  EXPECT_EQ(member(ask("kukuri:typo").body, "details.field"), "topic_name");
  EXPECT_EQ(member(ask_for("bitcoin").body, "details.field"), "topic_id");
}

TEST_F(UserTopicsTest, ARequestThatWaitsCanBeTakenBackByItsAuthorAlone) {
  const auto path = "/topic-subscription-requests/" + member(ask_for(kTopicA).body, "request_id");
  const auto bob = rig.log_in(SecretKey::generate());
  EXPECT_EQ(code(rig.get(path, bob)), "404 NOT_FOUND");
  EXPECT_EQ(code(rig.ask("DELETE", path, "", bob)), "404 NOT_FOUND");
  EXPECT_EQ(member(change("DELETE", path).body, "status"), "cancelled");
  const auto again = change("DELETE", path);
  EXPECT_EQ(code(again), "409 ALREADY_DECIDED");
  EXPECT_EQ(member(again.body, "details.status"), "cancelled");
}

TEST_F(UserTopicsTest, OnlySoManyRequestsWait) {
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask_for(fmt::format("kukuri:{:064x}", i)).status, 201);
  const auto refused = ask_for(kTopicA);
  EXPECT_EQ(code(refused), "429 PENDING_SUBSCRIPTION_REQUEST_LIMIT_REACHED");
  EXPECT_EQ(member(refused.body, "details.limit"), "5");
  rig.change({{"users.pending_requests_max", "6"}});
  EXPECT_EQ(ask_for(kTopicA).status, 201);
}

TEST_F(UserTopicsTest, ThePlanSaysHowManyTopics) {
  rig.sql("UPDATE cn_user.plan_limits SET value = 1 WHERE metric = 'max_topics'");
  rig.subscribe(token, kTopicA);
  const auto refused = ask_for(kTopicB);
  EXPECT_EQ(code(refused), "402 QUOTA_EXCEEDED");
  EXPECT_EQ(member(refused.body, "details"),
            R"({"metric":"max_topics","current":1,"limit":1,"reset_at":null})");
}

TEST_F(UserTopicsTest, ABlockedTopicIsNotAskedFor) {
  rig.sql(fmt::format("INSERT INTO cn_relay.blocks (kind, value) VALUES ('topic', '{}')", kTopicA));
  EXPECT_EQ(code(ask_for(kTopicA)), "403 TOPIC_BLOCKED");
}

TEST_F(UserTopicsTest, WhatIsSubscribedOrAskedForIsNotAskedForAgain) {
  const auto asked = ask_for(kTopicA, R"(,"requested_services":["index"])");
  const auto twice = ask_for(kTopicA);
  EXPECT_EQ(code(twice), "409 REQUEST_EXISTS");
  EXPECT_EQ(member(twice.body, "details.request_id"), member(asked.body, "request_id"));
  EXPECT_EQ(rig.approve(member(asked.body, "request_id")), "");
  rig.sql("UPDATE cn_user.topic_subscription_requests SET status = 'active'");
  EXPECT_EQ(code(ask_for(kTopicA, R"(,"requested_services":["index"])")), "409 ALREADY_SUBSCRIBED");
  EXPECT_EQ(ask_for(kTopicA).status, 201);
}

TEST_F(UserTopicsTest, AnInviteApprovesWhereTheOperatorHasItSo) {
  const auto add_invite = fmt::format(
      "INSERT INTO cn_user.invites (code_hash, uses_left, expires_at) VALUES ('{}', 1, now() + interval '1 "
      "h')",
      to_hex(sha256({"welcome"})));
  rig.sql(add_invite);
  const std::string invite = R"(,"invite_code":"welcome")";
  EXPECT_EQ(member(ask_for(kTopicA, invite).body, "status"), "pending");
  rig.change({{"users.auto_approve", "invite"}});
  EXPECT_EQ(member(ask_for(kTopicB, invite).body, "status"), "approved");
  EXPECT_EQ(code(ask_for("kukuri:global", invite)), "403 INVALID_INVITE");
}

TEST_F(UserTopicsTest, AListGoesOnWhereItsPageEnded) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(ask_for(fmt::format("kukuri:{:064x}", i)).status, 201);
  std::string path = "/topic-subscription-requests?limit=1";
  std::vector<std::string> seen;
  std::string cursor;
  do {
    const auto page = rig.get(path + (cursor.empty() ? "" : "&cursor=" + cursor), token).body;
    if (member(page, "items.0") == "null") break;
    seen.push_back(member(page, "items.0.topic_id").substr(70));
    cursor = member(page, "next_cursor");
  } while (cursor != "null");
  EXPECT_THAT(seen, testing::ElementsAre("2", "1", "0"));
  EXPECT_EQ(member(rig.get("/topic-subscription-requests?cursor=abc", token).body, "details.field"),
            "cursor");
  EXPECT_EQ(member(rig.get("/topic-subscriptions?cursor=.", token).body, "details.field"), "cursor");
}

// What fifty people may do with one topic at the same time, as rows; the counts follow.
TEST_F(UserTopicsTest, CountsStayRightWhileFiftyAskCancelAndAreApproved) {
  constexpr int kPeople = 50;
  std::vector<std::thread> people;
  for (int i = 0; i < kPeople; ++i) {
    people.emplace_back([this, i] {
      const auto mine = rig.log_in(SecretKey::generate());
      const auto asked =
          rig.post("/topic-subscription-requests", fmt::format(R"({{"topic_id":"{}"}})", kTopicA), mine);
      ASSERT_EQ(asked.status, 201) << asked.body;
      const auto id = member(asked.body, "request_id");
      std::thread approval([&] { static_cast<void>(rig.approve(id)); });
      if (i % 2 == 0) static_cast<void>(rig.ask("DELETE", "/topic-subscription-requests/" + id, "", mine));
      approval.join();
      if (i % 3 == 0) static_cast<void>(rig.ask("DELETE", "/topic-subscriptions/" + kTopicA, "", mine));
      if (i % 5 == 0)
        static_cast<void>(rig.ask("POST", "/topic-subscriptions/" + kTopicA + "/pause", "",
                                  mine + "Content-Length: 0\r\n"));
    });
  }
  for (auto& person : people) person.join();
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.wrong_ref_counts"), "0");
  // A subscription for each request that was approved, and for no other.
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.topic_subscription_requests r "
                      "FULL JOIN cn_user.topic_subscriptions s "
                      "ON s.subscriber_pubkey = r.requester_pubkey AND s.topic_id = r.topic_id "
                      "WHERE (r.reviewed_at IS NOT NULL) <> (s.topic_id IS NOT NULL)"),
            "0");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.topic_subscription_requests WHERE status = 'pending'"),
            "0");
  EXPECT_EQ(
      rig.value("SELECT count(*) FROM cn_user.topic_subscriptions WHERE status = 'active' AND "
                "subscriber_pubkey IN (SELECT requester_pubkey FROM cn_user.topic_subscription_requests "
                "WHERE status = 'cancelled')"),
      "0");
}

}  // namespace
}  // namespace todoke::test
