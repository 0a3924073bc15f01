// NIP-40: refused when it is over, hidden from that second on, and written to the log a little later.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class ExpiryTest : public TopicsTest {
 protected:
  // Long enough that the event is stored before it is over, on a busy machine too.
  static constexpr std::int64_t kSoon = 2;

  Event expiring(std::int64_t at, Tags tags = {}, nostr::Kind kind = 1) {
    tags.push_back({"expiration", std::to_string(at)});
    return global_note(alice, "for a while", std::move(tags), kind);
  }
  static void await_time(std::int64_t time) {
    ASSERT_TRUE(await([&] { return unix_now() >= time; }));
  }
  Rows await_log(const Event& event, const Rows& rows) {
    return rig.await_sql(
        fmt::format(
            "SELECT op, topic_id, reason FROM cn_relay.events_outbox WHERE event_id = '{}' ORDER BY seq",
            hex_of(event)),
        rows);
  }
};

const Rows kStoredAndExpired = {"upsert|kukuri:global|", "delete|kukuri:global|expiration"};

TEST_F(ExpiryTest, WhatIsOverIsRefused) {
  const auto now = unix_now();
  EXPECT_EQ(refusal_of(expiring(now)), "invalid: expired");
  EXPECT_EQ(refusal_of(expiring(now - 1)), "invalid: expired");
  EXPECT_EQ(refusal_of(expiring(0)), "invalid: expired");
  EXPECT_EQ(refusal_of(expiring(-1)), "invalid: expired");
  EXPECT_EQ(refusal_of(expiring(now + 100, {{"expiration", std::to_string(now)}})), "invalid: expired");
  for (const auto* text : {"", "soon", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(refusal_of(global_note(alice, "", {{"expiration", text}})),
              "invalid: expiration must be an integer");
  }
}

TEST_F(ExpiryTest, OpenRelayRefusesItToo) {
  const RelayRig open(kOpen);
  NostrClient there(open.url());
  EXPECT_EQ(there.publish(note(alice, "", {{"expiration", "1"}})).text, "invalid: expired");
}

TEST_F(ExpiryTest, FarExpirationsAreTaken) {
  for (const std::int64_t at : {unix_now() + 3'600, std::int64_t{253'402'300'800},
                                std::int64_t{99'999'999'999'999}, std::numeric_limits<std::int64_t>::max()}) {
    const auto event = expiring(at);
    store(event);
    EXPECT_THAT(client.stored(by_id(event)).events, ElementsAre(std::string(event.json()))) << at;
  }
}

TEST_F(ExpiryTest, EventIsHiddenFromItsSecondOnAndThenLogged) {
  const auto other = topic('3');
  enable_topic(rig, other);
  const auto at = unix_now() + kSoon;
  const auto event = expiring(at, {{"p", hex_of(bob)}, {"t", other}});
  store(event);
  NostrClient reader(rig.url());
  const auto early = reader.stored(by_id(event));
  if (unix_now() < at) {
    EXPECT_THAT(early.ids, ElementsAre(hex_of(event)));
  }
  await_time(at);
  EXPECT_THAT(reader.stored(by_id(event)).ids, IsEmpty());
  EXPECT_THAT(reader.stored(kGlobal).ids, IsEmpty());
  EXPECT_THAT(reader.stored(global_and(fmt::format(R"("#p":["{}"])", hex_of(bob)))).ids, IsEmpty());
  EXPECT_THAT(reader.stored(global_and(R"("seq_after":0)")).ids, IsEmpty());
  EXPECT_EQ(reader.count("c", kGlobal), R"(["COUNT","c",{"count":0}])");
  EXPECT_EQ(reader.count("c", by_id(event)), R"(["COUNT","c",{"count":0}])");
  const Rows log = {fmt::format("upsert|{}|", other), "upsert|kukuri:global|",
                    fmt::format("delete|{}|expiration", other), "delete|kukuri:global|expiration"};
  EXPECT_EQ(await_log(event, log), log);
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.effective_events"), "0");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.event_topics"), "0");
  EXPECT_EQ(rig.value("SELECT expired_at IS NOT NULL AND deleted_at IS NULL FROM cn_relay.events"), "t");
  EXPECT_EQ(refusal_of(event), "invalid: expired");
}

TEST_F(ExpiryTest, SubscribersGetItWhileItLasts) {
  client.request("live", kGlobal);
  const auto event = expiring(unix_now() + 3'600);
  store(event);
  EXPECT_EQ(client.live("live"), event.json());
}

TEST_F(ExpiryTest, ExpCountsForTheKindsThatHaveIt) {
  const auto at = unix_now() + kSoon;
  const auto exp = std::to_string(at);
  const Tags mark = {{"k", "kukuri"}, {"ver", "1"}, {"exp", exp}};
  const auto marked = [&](Tags tags) {
    tags.insert(tags.end(), mark.begin(), mark.end());
    return tags;
  };
  const auto descriptor = global_note(
      alice,
      R"({"schema":"kukuri-node-desc-v1","name":"n","roles":[],"endpoints":{},"policy_url":"","jurisdiction":"","contact":""})",
      marked({{"d", "descriptor"}}), 39000);
  const auto service = note(alice, R"({"schema":"kukuri-topic-service-v1"})",
                            marked({{"t", "kukuri:global"},
                                    {"d", "topic_service:kukuri:global:relay:public"},
                                    {"role", "relay"},
                                    {"scope", "public"}}),
                            39001);
  const auto label = global_note(alice, "",
                                 marked({{"d", "l"},
                                         {"target", "pubkey:" + hex_of(bob)},
                                         {"label", "spam"},
                                         {"policy_url", "u"},
                                         {"policy_ref", "r"}}),
                                 39006);
  // Any other kind may have a tag of that name.
  const auto plain = global_note(alice, "", {{"exp", exp}});
  for (const auto* event : {&descriptor, &service, &label, &plain}) store(*event);
  for (const auto* event : {&descriptor, &service, &label}) {
    EXPECT_EQ(await_log(*event, kStoredAndExpired), kStoredAndExpired);
    EXPECT_THAT(client.stored(by_id(*event)).ids, IsEmpty());
  }
  EXPECT_THAT(client.stored(by_id(plain)).ids, ElementsAre(hex_of(plain)));
  EXPECT_EQ(log_of(plain), Rows{"upsert|kukuri:global|"});
}

TEST_F(ExpiryTest, ExpiredVersionDoesNotBringBackAnOlderOne) {
  const auto now = unix_now();
  const auto older = global_note(alice, "older", {{"d", "x"}}, 30023, now - 10);
  const auto newer = expiring(now + kSoon, {{"d", "x"}}, 30023);
  store(older);
  store(newer);
  EXPECT_EQ(await_log(newer, kStoredAndExpired), kStoredAndExpired);
  EXPECT_EQ(refusal_of(older), "duplicate: newer version stored");
  EXPECT_THAT(client.stored(kGlobal).ids, IsEmpty());
  store(global_note(alice, "newest", {{"d", "x"}}, 30023, now + kSoon));
}

TEST_F(ExpiryTest, DeletedEventDoesNotExpireAsWell) {
  const auto at = unix_now() + kSoon;
  const auto deleted = expiring(at);
  const auto replaced = expiring(at, {{"d", "x"}}, 30023);
  const auto witness = expiring(at, {{"x", "y"}});
  store(deleted);
  store(replaced);
  store(witness);
  store(deletion_of(alice, {{"e", hex_of(deleted)}}));
  store(global_note(alice, "newer", {{"d", "x"}}, 30023, unix_now() + 1));
  EXPECT_EQ(await_log(witness, kStoredAndExpired), kStoredAndExpired);
  EXPECT_EQ(log_of(deleted), Rows({"upsert|kukuri:global|", "delete|kukuri:global|nip09"}));
  EXPECT_EQ(log_of(replaced), Rows({"upsert|kukuri:global|", "delete|kukuri:global|replaced"}));
}

}  // namespace
}  // namespace todoke::test
