// Ephemeral events: to everybody who listens, on every relay of the database, once, and nowhere else.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class EphemeralTest : public TwoRelaysTest {
 protected:
  Event typing(const std::string& content, Tags tags = {}, nostr::Kind kind = 20001) {
    return global_note(alice, content, std::move(tags), kind);
  }
};

TEST_F(EphemeralTest, ReachesSubscribersOnEveryRelayOnce) {
  NostrClient also_at_a(a.url());
  for (auto* client : {&at_a, &also_at_a, &at_b}) client->request("s", kGlobal);
  const auto one = typing(std::string("one\0\x7f", 5));
  const auto two = typing("two");
  store_at(at_a, one);
  for (auto* client : {&at_a, &also_at_a, &at_b}) EXPECT_EQ(client->live("s"), one.json());
  // Again, here and there: accepted, but not delivered a second time.
  store_at(at_a, one);
  store_at(at_b, one);
  store_at(at_b, two);
  for (auto* client : {&at_a, &also_at_a, &at_b}) EXPECT_EQ(client->live("s"), two.json());
}

TEST_F(EphemeralTest, IsNotStored) {
  for (const auto kind : std::initializer_list<nostr::Kind>{20000, 25000, 29999}) {
    const auto event = typing("gone", {}, kind);
    store_at(at_a, event);
    EXPECT_THAT(at_a.stored(by_id(event)).ids, IsEmpty());
  }
  EXPECT_THAT(at_a.stored(kGlobal).ids, IsEmpty());
  EXPECT_EQ(at_a.count("c", kGlobal), R"(["COUNT","c",{"count":0}])");
  for (const auto* table : {"events", "events_outbox", "event_topics", "event_tags", "event_dedupe"}) {
    EXPECT_EQ(a.value(fmt::format("SELECT count(*) FROM cn_relay.{}", table)), "0") << table;
  }
}

TEST_F(EphemeralTest, OnlyMatchingSubscriptionsGetIt) {
  at_b.request("kind", global_and(R"("kinds":[20002])"));
  at_b.request("tag", global_and(R"("#x":["1"])"));
  at_b.request("all", kGlobal);
  const auto one = typing("", {{"x", "1"}});
  const auto two = typing("", {}, 20002);
  store_at(at_a, one);
  store_at(at_a, two);
  EXPECT_EQ(at_b.live("tag"), one.json());
  EXPECT_EQ(at_b.live("kind"), two.json());
  EXPECT_EQ(at_b.live("all"), one.json());
  EXPECT_EQ(at_b.live("all"), two.json());
}

TEST_F(EphemeralTest, RulesHoldForItToo) {
  EXPECT_EQ(at_a.publish(note(alice, "", {}, 20001)).text, "invalid: missing topic");
  EXPECT_EQ(at_a.publish(note(alice, "", {{"t", topic('a')}}, 20001)).text, "restricted: topic not enabled");
  EXPECT_EQ(at_a.publish(typing("", {{"expiration", "1"}})).text, "invalid: expired");
  auto forged = std::string(typing("forged").json());
  forged.replace(forged.find("forged"), 6, "forger");
  EXPECT_EQ(at_a.publish_json(forged).text, "invalid: bad id");
}

TEST_F(EphemeralTest, TableBetweenTheRelaysIsUnloggedAndEmptied) {
  EXPECT_EQ(a.value("SELECT relpersistence FROM pg_class WHERE oid = 'cn_relay.ephemeral_events'::regclass"),
            "u");
  store_at(at_a, typing("passing by"));
  ASSERT_EQ(a.await_sql("SELECT count(*) FROM cn_relay.ephemeral_events", {"1"}), Rows{"1"});
  // As if some seconds had passed.
  a.sql("UPDATE cn_relay.ephemeral_events SET sent_at = sent_at - interval '6 seconds'");
  EXPECT_EQ(a.await_sql("SELECT count(*) FROM cn_relay.ephemeral_events", {"0"}), Rows{"0"});
}

TEST_F(EphemeralTest, ManyInARowAllArrive) {
  constexpr int kEvents = 300;
  at_b.request("s", kGlobal);
  Ids sent;
  for (int i = 0; i < kEvents; ++i) {
    const auto event = typing(std::to_string(i));
    sent.push_back(hex_of(event));
    at_a.send(fmt::format(R"(["EVENT",{}])", event.json()));
  }
  Ids got;
  for (int i = 0; i < kEvents; ++i) got.push_back(id_in(at_b.live("s")));
  EXPECT_EQ(got, sent);
}

TEST_F(EphemeralTest, LargeOnesArriveWhereTheLimitIsHigher) {
  const Flags large = {{"relay.event_bytes_max", "200KiB"}, {"relay.message_bytes_max", "400KiB"}};
  const RelayRig c(NodeRigOptions{.roles = {}, .flags = large, .database = database});
  const RelayRig d(NodeRigOptions{.roles = {}, .flags = large, .database = database});
  NostrClient at_c(c.url());
  net::WsClientOptions options;
  options.ws.message_bytes_max = 1024 * 1024;
  NostrClient at_d(d.url(), options);
  at_d.request("s", kGlobal);
  const auto event = typing(std::string(100'000, 'x'));
  store_at(at_c, event);
  const auto last = typing("last");
  store_at(at_c, last);
  EXPECT_EQ(id_in(at_d.live("s")), hex_of(event));
}

}  // namespace
}  // namespace todoke::test
