// Copies and deletions of what is stored about a person.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "harness/nostr_client.hpp"
#include "users/rig.hpp"
#include "users/test_support.hpp"

namespace todoke::test {
namespace {

using nostr::Event;
using testing::HasSubstr;
using testing::Not;
using users::unzipped;

class PersonalDataTest : public testing::Test {
 protected:
  PersonalDataTest() {
    rig.subscribe(token, kTopicA);
    rig.make_policies_current("1");
    EXPECT_EQ(rig.post("/consents", R"({"policies":[{"type":"terms","version":"1"}]})", token).status, 200);
  }

  Event store(const SecretKey& key, const std::string& content) {
    const auto event = note(key, content, {{"t", kTopicA}});
    EXPECT_TRUE(await([&] { return client.publish(event).accepted; }));
    return event;
  }
  // Asks for it and waits until it is done; its id.
  std::string done(const std::string& path) {
    const auto asked = rig.ask("POST", path, "", token + "Content-Length: 0\r\n");
    EXPECT_EQ(asked.status, 200) << asked.body;
    const auto id = member(asked.body, "request_id");
    std::string told;
    EXPECT_TRUE(await([&] {
      told = rig.get(path + "/" + id, token).body;
      return member(told, "status") == "succeeded";
    })) << told;
    return id;
  }
  // The body of a chunked answer.
  std::string download(const std::string& path) {
    net::test::RawClient http(rig.port());
    http.send(fmt::format("GET /api/v1{} HTTP/1.0\r\nHost: localhost\r\n{}\r\n", path, token));
    const auto all = http.read_exactly(10'000'000);
    EXPECT_THAT(all.substr(0, 20), HasSubstr("200"));
    return all.substr(all.find("\r\n\r\n") + 4);
  }

  UsersRig rig{{}, {"relay", "index", "users"}};
  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
  std::string token = rig.log_in(alice);
  NostrClient client{rig.url()};
};

constexpr auto* kExports = "/personal-data-export-requests";
constexpr auto* kDeletions = "/personal-data-deletion-requests";

TEST_F(PersonalDataTest, ACopyHasEverythingOfItsOwnerAndNothingOfOthers) {
  const auto mine = store(alice, "mine");
  const auto of_bob = store(bob, "not mine");
  const auto id = done(kExports);
  const auto files = unzipped(download(fmt::format("{}/{}/download", kExports, id)));
  EXPECT_THAT(files.at("events.jsonl"), HasSubstr(mine.id().hex()));
  EXPECT_THAT(files.at("events.jsonl"), Not(HasSubstr(of_bob.id().hex())));
  EXPECT_THAT(files.at("account.jsonl"), HasSubstr(alice.pubkey().hex()));
  EXPECT_THAT(files.at("consents.jsonl"), HasSubstr("terms"));
  EXPECT_THAT(files.at("topic_subscriptions.jsonl"), HasSubstr(kTopicA));
  EXPECT_THAT(files.at("topic_subscription_requests.jsonl"), HasSubstr(kTopicA));
  EXPECT_THAT(files.at("personal_data_requests.jsonl"), HasSubstr(id));
}

TEST_F(PersonalDataTest, ACopyIsItsOwnersAloneAndGoesAfterItsTime) {
  const auto path = fmt::format("{}/{}", kExports, done(kExports));
  const auto other = rig.log_in(bob);
  EXPECT_EQ(code(rig.get(path, other)), "404 NOT_FOUND");
  EXPECT_EQ(code(rig.get(path + "/download", other)), "404 NOT_FOUND");
  rig.sql("UPDATE cn_user.personal_data_requests SET status = 'expired'");
  EXPECT_EQ(code(rig.get(path + "/download", token)), "410 EXPIRED");
  rig.sql("UPDATE cn_user.personal_data_requests SET status = 'failed'");
  const auto failed = rig.get(path + "/download", token);
  EXPECT_EQ(code(failed), "409 NOT_READY");
  EXPECT_EQ(member(failed.body, "details.status"), "failed");
}

TEST_F(PersonalDataTest, WhileOneIsOpenItIsTheOneThatIsAskedFor) {
  rig.sql(
      "INSERT INTO cn_user.personal_data_requests (request_id, kind, owner_hash, pubkey) VALUES "
      "('01234567-89ab-cdef-0123-456789abcdef', 'export', cn_user.owner_hash('" +
      alice.pubkey().hex() + "'), '" + alice.pubkey().hex() + "')");
  const auto asked = rig.ask("POST", kExports, "", token + "Content-Length: 0\r\n");
  EXPECT_EQ(member(asked.body, "request_id"), "01234567-89ab-cdef-0123-456789abcdef");
}

TEST_F(PersonalDataTest, ADeletionLeavesNothingButItsOwnStatus) {
  const auto mine = store(alice, "mine");
  const auto of_bob = store(bob, "stays");
  rig.await_sql("SELECT count(*) FROM cn_search.post_search_documents", {"2"});
  done(kExports);
  const auto id = done(kDeletions);
  const auto key = alice.pubkey().hex();
  EXPECT_EQ(rig.value(fmt::format("SELECT op || ' ' || reason FROM cn_relay.events_outbox "
                                  "WHERE event_id = '{}' ORDER BY seq DESC LIMIT 1",
                                  mine.id().hex())),
            "delete dsar");
  for (const auto* table :
       {"cn_relay.events WHERE pubkey", "cn_search.post_search_documents WHERE deleted_at IS NULL AND pubkey",
        "cn_user.policy_consents WHERE pubkey", "cn_user.topic_subscriptions WHERE subscriber_pubkey",
        "cn_user.topic_subscription_requests WHERE requester_pubkey",
        "cn_user.usage_counters_daily WHERE pubkey", "cn_user.auth_challenges WHERE pubkey",
        "cn_user.personal_data_requests WHERE pubkey"}) {
    EXPECT_EQ(rig.value(fmt::format("SELECT count(*) FROM {} = '{}'", table, key)), "0") << table;
  }
  EXPECT_EQ(
      rig.value(fmt::format(
          "SELECT count(*) FROM cn_relay.topic_links WHERE short_author = cn_relay.short_id('{}')", key)),
      "0");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.export_chunks"), "0");
  EXPECT_EQ(
      rig.value(fmt::format("SELECT count(*) FROM cn_relay.events WHERE event_id = '{}'", of_bob.id().hex())),
      "1");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_user.wrong_ref_counts"), "0");
  EXPECT_EQ(code(rig.get("/consents/status", token)), "410 ACCOUNT_DELETED");
  EXPECT_EQ(member(rig.get(fmt::format("{}/{}", kDeletions, id), token).body, "status"), "succeeded");
  EXPECT_FALSE(client.publish(note(alice, "again", {{"t", "kukuri:global"}})).accepted);
}

TEST_F(PersonalDataTest, AJobThatAnOperatorCancelsEndsTheRequest) {
  rig.sql("UPDATE cn_relay.erase_pass SET rest_until = now() + interval '1 h'");
  const auto asked = rig.ask("POST", kDeletions, "", token + "Content-Length: 0\r\n");
  rig.sql("UPDATE cn_admin.jobs SET cancel_asked_at = now() WHERE kind = 'personal_data.deletion'");
  EXPECT_EQ(
      rig.await_sql("SELECT status FROM cn_admin.jobs WHERE kind = 'personal_data.deletion'", {"cancelled"}),
      Rows{"cancelled"});
  rig.sql("SELECT cn_user.settle_data_requests()");
  const auto path = fmt::format("{}/{}", kDeletions, member(asked.body, "request_id"));
  EXPECT_EQ(member(rig.get(path, token).body, "status"), "cancelled");
}

}  // namespace
}  // namespace todoke::test
