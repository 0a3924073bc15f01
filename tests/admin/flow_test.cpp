// What operators do over HTTP: it happens, it is audited in its transaction, and it can't happen twice.
#include <future>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "admin/rig.hpp"

namespace todoke::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kAlice(64, 'a');
const std::string kTopic = "kukuri:" + std::string(64, '1');

class AdminFlowTest : public testing::Test {
 protected:
  // Asks at the same time; how many answers there were of each status.
  std::map<int, int> at_once(const std::vector<std::pair<std::string, std::string>>& posts) {
    std::vector<std::future<int>> asked;
    for (const auto& post : posts) {
      asked.push_back(
          std::async(std::launch::async, [&] { return rig.post(post.first, post.second).status; }));
    }
    std::map<int, int> statuses;
    for (auto& answer : asked) ++statuses[answer.get()];
    return statuses;
  }
  std::string audited(const std::string& action) {
    return rig.node.value("SELECT count(*) FROM cn_admin.audit WHERE action = '" + action + "'");
  }

  AdminRig rig;
};

TEST_F(AdminFlowTest, AnApprovedRequestBecomesASubscriptionOfItsAuthor) {
  const auto id = rig.add_request(kAlice, kTopic);
  EXPECT_THAT(rig.get("/subscription-requests?status=pending").body, HasSubstr(id));
  const auto answer = rig.post("/subscription-requests/" + id + "/approve", R"({"review_note":"welcome"})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(json_text(answer.body, "request_id"), id);
  EXPECT_EQ(json_text(answer.body, "reviewed_by"), "token:test operator");
  EXPECT_EQ(rig.node.value("SELECT ref_count, enabled FROM cn_relay.node_subscriptions WHERE topic_id = '" +
                           kTopic + "'"),
            "1|t");
  EXPECT_EQ(json_text(rig.post("/subscription-requests/" + id + "/reject", "{}").body, "code"),
            "ALREADY_DECIDED");
  EXPECT_THAT(rig.get("/node-subscriptions").body, HasSubstr(kTopic));
  EXPECT_EQ(rig.node.value("SELECT actor, network IS NOT NULL, after ->> 'review_note' FROM cn_admin.audit"
                           " WHERE action = 'subscription_request change'"),
            "token:test operator|t|welcome");
}

TEST_F(AdminFlowTest, OfFiftyDecisionsAtOnceOneHolds) {
  const auto id = rig.add_request(kAlice, kTopic);
  std::vector<std::pair<std::string, std::string>> posts;
  for (int i = 0; i < 50; ++i)
    posts.emplace_back("/subscription-requests/" + id + (i % 2 == 0 ? "/approve" : "/reject"), "{}");
  EXPECT_EQ(at_once(posts), (std::map<int, int>{{200, 1}, {409, 49}}));
  EXPECT_EQ(audited("subscription_request change"), "1");
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_user.wrong_ref_counts"), "0");
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_user.topic_subscription_requests r LEFT JOIN"
                           " cn_user.topic_subscriptions s ON s.topic_id = r.topic_id"
                           " WHERE (r.status IN ('approved', 'active')) = (s.status IS NOT NULL)"),
            "1");
}

TEST_F(AdminFlowTest, OfTwentyWritersOfOneVersionOneWins) {
  const auto before = rig.get("/services/relay/config");
  ASSERT_EQ(before.status, 200) << before.body;
  const auto version = json_text(before.body, "version");
  std::vector<std::future<int>> asked;
  for (int i = 0; i < 20; ++i) {
    asked.push_back(std::async(std::launch::async, [&, i] {
      return rig
          .put("/services/relay/config",
               fmt::format(R"({{"expected_version":{},"config":{{"relay.name":"n{}"}}}})", version, i))
          .status;
    }));
  }
  std::map<int, int> statuses;
  for (auto& answer : asked) ++statuses[answer.get()];
  EXPECT_EQ(statuses, (std::map<int, int>{{200, 1}, {409, 19}}));
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_admin.service_config_history WHERE key = 'relay.name'"),
            "1");
}

TEST_F(AdminFlowTest, AConfigurationThatAStartWouldRefuseIsRefused) {
  const auto put = [&](const std::string& service, const std::string& config) {
    const auto version = json_text(rig.get("/services/" + service + "/config").body, "version");
    return rig.put("/services/" + service + "/config",
                   fmt::format(R"({{"expected_version":{},"config":{}}})", version, config));
  };
  EXPECT_EQ(json_text(put("relay", R"({"relay.nosuch":"1"})").body, "field"), "config.relay.nosuch");
  EXPECT_EQ(json_text(put("relay", R"({"log.level":"debug"})").body, "field"), "config.log.level");
  EXPECT_EQ(put("relay", R"({"relay.limit_default":"6000"})").status, 422);
  // The rig sets it by a flag.
  EXPECT_EQ(json_text(put("limits", R"({"limits.rates":"on"})").body, "code"), "PINNED");
  EXPECT_EQ(rig.get("/services/nosuch/config").status, 404);
}

TEST_F(AdminFlowTest, ADisabledKeyIsKeptOutAndLetInAgain) {
  EXPECT_EQ(json_text(rig.post("/users/" + kAlice + "/disable", R"({"note":"spam"})").body, "status"),
            "disabled");
  EXPECT_THAT(rig.get("/users?status=disabled").body, HasSubstr(kAlice));
  EXPECT_EQ(json_text(rig.post("/users/" + kAlice + "/enable", "{}").body, "status"), "active");
  EXPECT_EQ(audited("account change"), "2");
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_admin.audit WHERE before::text || after::text LIKE '%" +
                           kAlice + "%'"),
            "0");
}

TEST_F(AdminFlowTest, APlanIsMadeGivenAndReplaced) {
  ASSERT_EQ(rig.put("/plans/club", R"({"name":"Club","limits":{"max_topics":7}})").status, 200);
  rig.post("/users/" + kAlice + "/enable", "{}");
  EXPECT_EQ(json_text(rig.put("/users/" + kAlice + "/plan", R"({"plan_id":"club"})").body, "plan_id"),
            "club");
  EXPECT_EQ(json_text(rig.put("/users/" + kAlice + "/plan", R"({"plan_id":"none"})").body, "field"),
            "plan_id");
  ASSERT_EQ(rig.put("/plans/club", R"({"name":"Club","is_default":true,"limits":{}})").status, 200);
  EXPECT_EQ(rig.node.value("SELECT string_agg(plan_id, ',') FROM cn_user.plans WHERE is_default"), "club");
  EXPECT_EQ(rig.node.value("SELECT count(*) FROM cn_user.plan_limits WHERE plan_id = 'club'"), "0");
}

TEST_F(AdminFlowTest, APublishedPolicyCanNotBeEditedAndOnlyAPublishedOneBecomesCurrent) {
  const std::string place = "/policies/terms/2026-01";
  const std::string text = R"({"title":"Terms","content":"Be kind."})";
  EXPECT_EQ(rig.put(place, text).status, 200);
  EXPECT_EQ(json_text(rig.post(place + "/make-current").body, "code"), "POLICY_NOT_PUBLISHED");
  EXPECT_EQ(rig.post(place + "/publish").status, 200);
  EXPECT_EQ(json_text(rig.post(place + "/publish").body, "code"), "POLICY_PUBLISHED");
  EXPECT_EQ(json_text(rig.put(place, text).body, "code"), "POLICY_PUBLISHED");
  EXPECT_EQ(rig.post(place + "/make-current").status, 200);
  EXPECT_EQ(json_text(rig.get("/policies").body, "is_current"), "true");
  EXPECT_EQ(rig.post("/policies/terms/nosuch/make-current").status, 404);
}

TEST_F(AdminFlowTest, ATopicIsTakenInGivenAPolicyAndLetGo) {
  const auto place = "/node-subscriptions/" + kTopic;
  EXPECT_EQ(rig.post("/node-subscriptions/nonsense/enable", "{}").status, 422);
  EXPECT_EQ(json_text(rig.post(place + "/enable", R"({"name":"Bitcoin"})").body, "pinned"), "true");
  EXPECT_THAT(rig.put(place + "/ingest-policy", R"({"ingest_policy":{"retention_days":9}})").body,
              HasSubstr("retention_days"));
  EXPECT_EQ(json_text(rig.put(place + "/ingest-policy", R"({"ingest_policy":{"nosuch":9}})").body, "field"),
            "ingest_policy");
  EXPECT_EQ(json_text(rig.post(place + "/disable").body, "enabled"), "false");
}

TEST_F(AdminFlowTest, AJobIsShownAndCancelledOnce) {
  const auto id = rig.node.value("SELECT cn_admin.add_job('test.other', '', '{}')");
  EXPECT_EQ(json_text(rig.get("/jobs/" + id).body, "status"), "pending");
  EXPECT_EQ(json_text(rig.post("/jobs/" + id + "/cancel").body, "status"), "cancelled");
  EXPECT_EQ(json_text(rig.post("/jobs/" + id + "/cancel").body, "code"), "ALREADY_ENDED");
  EXPECT_EQ(audited("job cancel"), "1");
}

TEST_F(AdminFlowTest, AConsumerIsPausedReplayedAndGoesOn) {
  rig.node.sql("INSERT INTO cn_relay.consumer_offsets (consumer, last_seq) VALUES ('outside', 0)");
  EXPECT_EQ(json_text(rig.post("/consumers/outside/pause").body, "paused"), "true");
  EXPECT_EQ(json_text(rig.post("/consumers/outside/resume").body, "paused"), "false");
  EXPECT_EQ(rig.post("/consumers/outside/replay", R"({"after_seq":0})").status, 200);
  EXPECT_EQ(rig.post("/consumers/nosuch/pause").status, 404);
  EXPECT_EQ(rig.node.value("SELECT string_agg(action || ' ' || actor, ',' ORDER BY id) FROM cn_admin.audit"
                           " WHERE subject = 'consumer outside'"),
            "consumer pause token:test operator,consumer resume token:test operator,"
            "consumer replay token:test operator");
}

TEST_F(AdminFlowTest, ABlockIsAddedAndRemoved) {
  const std::string block = R"({"kind":"pubkey","value":")" + kAlice + "\"}";
  EXPECT_EQ(rig.post("/blocks", block).status, 200);
  EXPECT_THAT(rig.get("/blocks?kind=pubkey").body, HasSubstr(kAlice));
  EXPECT_EQ(rig.post("/blocks/remove", block).status, 200);
  EXPECT_EQ(rig.post("/blocks/remove", block).status, 404);
  EXPECT_EQ(json_text(rig.post("/blocks", R"({"kind":"pubkey","value":"x"})").body, "field"), "value");
}

TEST_F(AdminFlowTest, OrdersAreHaltedAndResumedInTheNameOfWhoAsked) {
  EXPECT_EQ(json_text(rig.post("/order-halts/halt", R"({"instrument":"BTC-USD","reason":"test"})").body,
                      "is_halted"),
            "true");
  EXPECT_THAT(rig.get("/order-halts").body, HasSubstr("BTC-USD"));
  EXPECT_EQ(rig.post("/order-halts/resume", R"({"instrument":"BTC-USD"})").status, 200);
  EXPECT_EQ(rig.post("/order-halts/resume", R"({"instrument":"BTC-USD"})").status, 404);
  EXPECT_EQ(
      rig.node.value(
          "SELECT count(*) FROM orders.audit WHERE actor = 'token:test operator' AND network IS NOT NULL"),
      "2");
}

TEST_F(AdminFlowTest, AListIsPagedByKeyWithoutGapsAndWithoutRepeats) {
  for (int i = 0; i < 7; ++i)
    rig.node.sql(fmt::format("SELECT cn_admin.add_job('test.page', 's{}', '{{}}')", i));
  std::vector<std::string> seen;
  std::string cursor;
  do {
    const auto page =
        rig.get("/jobs?order=oldest&limit=3&kind=test.page" + (cursor.empty() ? "" : "&cursor=" + cursor))
            .body;
    for (auto at = page.find("\"subject\""); at != std::string::npos; at = page.find("\"subject\"", at + 1))
      seen.push_back(json_text(page.substr(at), "subject"));
    cursor = json_text(page, "next_cursor");
  } while (cursor != "null");
  EXPECT_THAT(seen, ElementsAre("s0", "s1", "s2", "s3", "s4", "s5", "s6"));
}

TEST_F(AdminFlowTest, AStreamTellsWhatHasChanged) {
  net::test::RawClient client(rig.node.internal_port());
  client.send("GET /admin-api/v1/events/stream HTTP/1.1\r\nHost: localhost\r\n" + rig.token_line("viewer") +
              "\r\n");
  std::string heard;
  const auto hear = [&](const std::string& what) {
    while (heard.find(what) == std::string::npos) {
      const auto more = client.read_exactly(1);
      if (more.empty()) return false;
      heard += more;
    }
    return true;
  };
  ASSERT_TRUE(hear("retry: 1000"));
  EXPECT_THAT(heard, HasSubstr("text/event-stream"));
  ASSERT_TRUE(hear("event: "));  // of the beginning: what changed before is not known
  ASSERT_TRUE(hear("\n\n"));
  heard.clear();
  rig.add_request(kAlice, kTopic);
  EXPECT_TRUE(hear("event: requests\ndata: {}\n\n"));
}

TEST_F(AdminFlowTest, TheTrailIsWholeAndWhatSomebodyForgedIsFound) {
  rig.post("/users/" + kAlice + "/disable", "{}");
  rig.post("/users/" + kAlice + "/enable", "{}");
  rig.post("/order-halts/halt", "{}");
  const auto version = json_text(rig.get("/services/relay/config").body, "version");
  rig.put("/services/relay/config",
          fmt::format(R"({{"expected_version":{},"config":{{"relay.name":"n"}}}})", version));
  EXPECT_EQ(json_text(rig.get("/audit/trail").body, "is_whole"), "true") << rig.get("/audit/trail").body;
  EXPECT_THAT(rig.get("/audit?action=account").body, HasSubstr("account change"));
  const auto forge = [&](const std::string& table, const std::string& change) {
    rig.node.sql("ALTER TABLE " + table + " DISABLE TRIGGER USER; " + change + "; ALTER TABLE " + table +
                 " ENABLE TRIGGER USER");
  };
  forge("cn_admin.audit",
        "UPDATE cn_admin.audit SET actor = 'operator:mallory' WHERE id = (SELECT min(id) FROM cn_admin.audit "
        "WHERE action = 'account change')");
  EXPECT_THAT(rig.get("/audit/trail").body, HasSubstr("its row, or a link before it, was changed"));
  forge("orders.audit", "DELETE FROM orders.audit");
  EXPECT_THAT(rig.get("/audit/trail").body, HasSubstr("its row is gone"));
  forge("cn_admin.audit",
        "INSERT INTO cn_admin.audit (actor, action, subject) VALUES ('operator:x', 'a', 'b')");
  EXPECT_THAT(rig.get("/audit/trail").body, HasSubstr("a row that has no link"));
  forge("cn_admin.audit_chain", "DELETE FROM cn_admin.audit_chain WHERE number = 2");
  EXPECT_THAT(rig.get("/audit/trail").body, HasSubstr("links before it are missing"));
}

TEST_F(AdminFlowTest, MetricsAreKeptByTheMinute) {
  ASSERT_TRUE(
      await([&] { return rig.node.value("SELECT count(*) > 0 FROM cn_admin.metric_samples") == "t"; }));
  EXPECT_THAT(rig.get("/metrics/series?series=connections").body, HasSubstr("\"connections\""));
}

TEST_F(AdminFlowTest, ServicesShowTheirHealth) {
  EXPECT_THAT(rig.get("/services").body, HasSubstr("\"service\":\"jobs\""));
}

}  // namespace
}  // namespace todoke::test
