// What a client may ask for, and how often.
#include <fmt/format.h>

#include "harness/run_task.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

class LimitsTest : public testing::Test {
 protected:
  static constexpr const char* kSlowDown = "rate-limited: slow down";

  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

TEST_F(LimitsTest, SubscriptionsOfAConnectionAreCounted) {
  const RelayRig rig(Flags{{"relay.subscriptions_max", "3"}});
  NostrClient client(rig.url());
  for (const auto* sub : {"a", "b", "c"}) EXPECT_EQ(client.request(sub, kGlobal).closed, "");
  EXPECT_EQ(client.request("d", kGlobal).closed, "restricted: too many subscriptions");
  // One that takes the place of another is no further one.
  EXPECT_EQ(client.request("b", kGlobal).closed, "");
  EXPECT_EQ(rig.metric("todoke_ws_subscriptions"), 3);
  client.send(R"(["CLOSE","a"])");
  EXPECT_EQ(client.request("d", kGlobal).closed, "");
  NostrClient other(rig.url());
  EXPECT_EQ(other.request("a", kGlobal).closed, "");
}

TEST_F(LimitsTest, EventsAreCountedByAddress) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "3"}});
  NostrClient client(rig.url());
  for (int i = 0; i < 3; ++i) store_at(client, global_note(alice, std::to_string(i)));
  const auto event = global_note(alice, "one too many");
  EXPECT_EQ(client.publish(event).text, kSlowDown);
  NostrClient other(rig.url());
  EXPECT_EQ(other.publish(event).text, kSlowDown);
  // A key opens no new allowance.
  EXPECT_TRUE(other.authenticate(alice).accepted);
  EXPECT_EQ(other.publish(event).text, kSlowDown);
  EXPECT_EQ(client.stored(kGlobal).ids.size(), 3U);
  EXPECT_EQ(rig.metric(R"(todoke_ingest_rejected_total{reason="rate_limited"})"), 3);
}

// A client behind a proxy that the relay believes.
net::WsClientOptions from(const std::string& ip) {
  net::WsClientOptions options;
  options.headers.add("X-Forwarded-For", ip);
  return options;
}

const std::pair<std::string, std::string> kBehindProxy{"server.trusted_proxies", "127.0.0.1"};

TEST_F(LimitsTest, Ipv6ClientIsItsNetwork) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "2"}, kBehindProxy});
  for (int i = 0; i < 2; ++i) {
    NostrClient client(rig.url(), from("2001:db8:0:1::" + std::to_string(i)));
    store_at(client, global_note(alice, std::to_string(i)));
  }
  NostrClient same(rig.url(), from("2001:db8:0:1:ffff::9"));
  EXPECT_EQ(same.publish(global_note(alice, "one too many")).text, kSlowDown);
  NostrClient other(rig.url(), from("2001:db8:0:2::1"));
  store_at(other, global_note(alice, "another customer"));
}

TEST_F(LimitsTest, KeyIsCountedWhereverItIs) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "2"}, kBehindProxy});
  for (int i = 0; i < 2; ++i) {
    NostrClient client(rig.url(), from("192.0.2." + std::to_string(i)));
    EXPECT_TRUE(client.authenticate(alice).accepted);
    store_at(client, global_note(alice, std::to_string(i)));
  }
  NostrClient third(rig.url(), from("192.0.2.3"));
  EXPECT_TRUE(third.authenticate(alice).accepted);
  EXPECT_EQ(third.publish(global_note(alice, "one too many")).text, kSlowDown);
  NostrClient fourth(rig.url(), from("192.0.2.3"));
  store_at(fourth, global_note(bob, "the address has paid nothing for what was refused"));
}

TEST_F(LimitsTest, SharedAddressHasRoomForTheKeysThatWereProvenThere) {
  const RelayRig rig(
      Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "2"}, {"limits.address_factor", "3"}});
  NostrClient anonymous(rig.url());
  for (int i = 0; i < 2; ++i) store_at(anonymous, global_note(alice, std::to_string(i)));
  EXPECT_EQ(anonymous.publish(global_note(alice, "2")).text, kSlowDown);
  int stored = 0;
  for (int i = 0; i < 5; ++i) {
    const auto key = SecretKey::generate();
    NostrClient client(rig.url());
    EXPECT_TRUE(client.authenticate(key).accepted);
    stored += client.publish(global_note(key, "1")).accepted ? 1 : 0;
    stored += client.publish(global_note(key, "2")).accepted ? 1 : 0;
  }
  EXPECT_EQ(stored, 4) << "three times the rate for all, fresh keys or not";
}

TEST_F(LimitsTest, QuestionWithManyFiltersCostsMore) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "6"}});
  NostrClient client(rig.url());
  std::string filters = kGlobal;
  for (int i = 1; i < 20; ++i) filters += "," + global_and(fmt::format(R"("limit":{})", i));
  EXPECT_EQ(client.request("a", filters).closed, "");
  EXPECT_EQ(client.request("b", kGlobal).closed, "");
  EXPECT_EQ(client.request("c", kGlobal).closed, kSlowDown);
}

TEST_F(LimitsTest, ConnectionsOfAnAddressAreCountedWhileTheyAreOpen) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.connections_per_address", "2"}});
  NostrClient one(rig.url());
  {
    const NostrClient two(rig.url());
    try {
      const NostrClient three(rig.url());
      FAIL() << "a third connection was let in";
    } catch (const net::WsRefused& refused) {
      EXPECT_EQ(refused.status(), 429);
    }
  }
  EXPECT_TRUE(rig.await_metric("todoke_ws_connections", 1));
  EXPECT_EQ(
      rig.metric(
          R"(todoke_http_connections_refused_total{listener="public",reason="connections_per_address"})"),
      1);
  EXPECT_TRUE(await([&] {
    try {
      const NostrClient again(rig.url());
      return true;
    } catch (const net::WsRefused&) {
      return false;
    }
  }));
  EXPECT_EQ(one.stored(kGlobal).closed, "");
}

TEST_F(LimitsTest, ConnectionsBehindAProxyAreThoseOfTheClientsThatItNames) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.connections_per_address", "1"}, kBehindProxy});
  const NostrClient one(rig.url(), from("192.0.2.1"));
  EXPECT_THROW(NostrClient(rig.url(), from("192.0.2.1")), net::WsRefused);
  const NostrClient other(rig.url(), from("192.0.2.2"));
}

TEST_F(LimitsTest, ProxyThatIsNotListedIsSuspected) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "1"}});
  NostrClient one(rig.url(), from("192.0.2.1"));
  NostrClient two(rig.url(), from("192.0.2.2"));
  store_at(one, global_note(alice, ""));
  EXPECT_EQ(rig.metric("todoke_proxy_suspected_total"), 0);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(two.publish(global_note(bob, "")).text, kSlowDown);
  EXPECT_EQ(rig.metric("todoke_proxy_suspected_total"), 1);
}

TEST_F(LimitsTest, TagsHaveALimitOfTheirOwn) {
  const RelayRig rig(Flags{{"relay.tags_bytes_max", "1KiB"}});
  NostrClient client(rig.url());
  store_at(client, global_note(alice, std::string(4'000, 'x')));
  Tags tags;
  for (int i = 0; i < 4; ++i) tags.push_back({"alt", std::string(250, 'x')});
  store_at(client, global_note(alice, "", {tags.begin(), tags.end() - 1}));
  EXPECT_EQ(client.publish(global_note(alice, "", tags)).text, "invalid: tags too large");
}

TEST_F(LimitsTest, RequestsAndCountsAreCountedTogether) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "3"}});
  NostrClient client(rig.url());
  EXPECT_EQ(client.request("a", kGlobal).closed, "");
  EXPECT_EQ(client.count("c", kGlobal), R"(["COUNT","c",{"count":0}])");
  EXPECT_EQ(client.request("b", kGlobal).closed, "");
  EXPECT_EQ(client.request("c", kGlobal).closed, kSlowDown);
  EXPECT_EQ(client.count("c", kGlobal), fmt::format(R"(["CLOSED","c","{}"])", kSlowDown));
  // What is open stays open, and events are another matter.
  const auto event = global_note(alice, "");
  store_at(client, event);
  EXPECT_EQ(client.live("a"), event.json());
  EXPECT_EQ(client.live("b"), event.json());
}

TEST_F(LimitsTest, MalformedEventsCostATokenEach) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "3"}});
  NostrClient client(rig.url());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.publish_json("{}").text, "invalid: missing event member");
  EXPECT_EQ(client.publish_json("{}").text, kSlowDown);
  EXPECT_EQ(client.publish(global_note(alice, "")).text, kSlowDown);
  EXPECT_EQ(rig.metric(R"(todoke_ingest_received_total{source="ws"})"), 5);
  EXPECT_EQ(rig.metric(R"(todoke_ingest_rejected_total{reason="rate_limited"})"), 2);
}

TEST_F(LimitsTest, EverythingElseThatCantBeUnderstoodCostsATokenOfTheRequests) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "6"}});
  NostrClient client(rig.url());
  EXPECT_EQ(client.request("s", R"({"x":1})").closed, "unsupported: unknown filter key");
  EXPECT_EQ(client.count("s", "7"), R"(["CLOSED","s","invalid: filter must be an object"])");
  client.send(R"(["AUTH",{}])");
  EXPECT_EQ(client.receive(), R"(["OK","",false,"invalid: missing event member"])");
  client.send("what?");
  EXPECT_EQ(client.receive(), R"(["NOTICE","invalid: message is not JSON"])");
  client.send(R"(["HELLO"])");
  EXPECT_EQ(client.receive(), R"(["NOTICE","invalid: unknown message type"])");
  client.send_binary("[]");
  EXPECT_EQ(client.receive(), R"(["NOTICE","invalid: message must be text, not binary"])");

  EXPECT_EQ(client.request("s", kGlobal).closed, kSlowDown);
  client.send(R"(["AUTH",{}])");
  EXPECT_EQ(client.receive(), fmt::format(R"(["OK","",false,"{}"])", kSlowDown));
  client.send("what?");
  EXPECT_EQ(client.receive(), fmt::format(R"(["NOTICE","{}"])", kSlowDown));
  EXPECT_EQ(rig.metric(R"(todoke_rate_limited_total{verb="req"})"), 3);
  EXPECT_EQ(rig.metric(R"(todoke_ingest_received_total{source="ws"})"), 0) << "an AUTH is no event to store";
  EXPECT_EQ(rig.metric(R"(todoke_ingest_rejected_total{reason="missing_member"})"), 0);
}

TEST_F(LimitsTest, ClosesHaveARateOfTheirOwnAndAreCarriedOutBeyondIt) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "3"}});
  NostrClient client(rig.url());
  for (const auto* sub : {"a", "b", "c"}) EXPECT_EQ(client.request(sub, kGlobal).closed, "");
  for (int i = 0; i < 3; ++i) client.send(R"(["CLOSE","unknown"])");
  client.send(R"(["CLOSE","a"])");
  const auto slow_down = fmt::format(R"(["NOTICE","{}"])", kSlowDown);
  EXPECT_EQ(client.receive(), slow_down);
  EXPECT_TRUE(rig.await_metric("todoke_ws_subscriptions", 2));
  EXPECT_EQ(rig.metric(R"(todoke_rate_limited_total{verb="close"})"), 1);
  for (int i = 0; i < 100; ++i) client.send(R"(["CLOSE","unknown"])");
  while (const auto message = client.receive_or_end()) EXPECT_EQ(*message, slow_down);
  EXPECT_EQ(client.close_code(), 1008);
}

TEST_F(LimitsTest, LargeEventCostsMoreHoweverWellItCompresses) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "10"}});
  NostrClient client(rig.url());
  ASSERT_TRUE(client.compressed());
  for (int i = 0; i < 3; ++i)
    store_at(client, global_note(alice, std::string(40'000, 'x') + std::to_string(i)));
  store_at(client, global_note(alice, "the tenth token"));
  EXPECT_EQ(client.publish(global_note(alice, "one too many")).text, kSlowDown);
}

TEST_F(LimitsTest, EventThatMakesManyRowsCostsMore) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "10"}});
  NostrClient client(rig.url());
  Tags many;
  for (int i = 0; i < 300; ++i) many.push_back({"p", std::to_string(i)});
  store_at(client, global_note(alice, "four tokens", many));
  store_at(client, global_note(alice, "again", many));
  Tags targets;
  for (int i = 0; i < 50; ++i) targets.push_back({"e", fmt::format("{:064x}", i)});
  store_at(client, deletion_of(alice, targets));  // two: a row for each tag and one for each target
  EXPECT_EQ(client.publish(global_note(alice, "one too many")).text, kSlowDown);
}

TEST_F(LimitsTest, EventThatCostsMoreThanAFullBucketIsTakenFromAFullOne) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "2"}});
  NostrClient client(rig.url());
  store_at(client, global_note(alice, std::string(60'000, 'x')));
  EXPECT_EQ(client.publish(global_note(alice, "")).text, kSlowDown);
}

TEST_F(LimitsTest, RowsOfABatchAreBounded) {
  const RelayRig rig;
  NostrClient client(rig.url());
  Tags many;
  for (int i = 0; i < 1'500; ++i) many.push_back({"x", std::to_string(i)});
  std::vector<Event> events;
  for (int i = 0; i < 15; ++i) events.push_back(global_note(alice, std::to_string(i), many));
  for (const auto& event : events) client.send(fmt::format(R"(["EVENT",{}])", event.json()));
  for (const auto& event : events) {
    EXPECT_EQ(client.receive(), fmt::format(R"(["OK","{}",true,""])", hex_of(event)));
  }
  const auto batches = rig.metric("todoke_ingest_batch_rows_count");
  EXPECT_GE(batches, 5);
  EXPECT_EQ(rig.metric(R"(todoke_ingest_batch_rows_bucket{le="8192"})"), batches);
}

TEST_F(LimitsTest, PressureMakesEventsDearer) {
  RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "8"}});
  NostrClient client(rig.url());
  rig.press(3);
  store_at(client, global_note(alice, "1"));
  store_at(client, global_note(alice, "2"));
  EXPECT_EQ(client.publish(global_note(alice, "3")).text, kSlowDown);
}

TEST_F(LimitsTest, NewConnectionsAreCounted) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.connections_per_minute", "2"}});
  NostrClient one(rig.url());
  NostrClient two(rig.url());
  run_task([&]() -> Task<void> {
    const auto deadline = Deadline::after(kClientPatience);
    const auto third = co_await net::WsClient::connect(rig.url(), {}, deadline);
    const auto notice = co_await third->receive(deadline);
    EXPECT_EQ(notice.value().payload, fmt::format(R"(["NOTICE","{}"])", kSlowDown));
    const auto end = co_await third->receive(deadline);
    EXPECT_FALSE(end.has_value());
    EXPECT_EQ(third->close_code(), 1013);
    co_await third->close(1000, "", deadline);
  });
  EXPECT_EQ(one.stored(kGlobal).closed, "");
  EXPECT_EQ(two.stored(kGlobal).closed, "");
}

TEST_F(LimitsTest, MessageThatIsTooLongCostsANoticeAndTheConnectionOnlyFarBeyond) {
  const RelayRig rig(Flags{{"relay.message_bytes_max", "4KiB"}});
  NostrClient client(rig.url());
  client.send("[\"EVENT\",\"" + std::string(8'000, 'x') + "\"]");
  EXPECT_EQ(client.receive(), R"(["NOTICE","invalid: message too long"])");
  EXPECT_EQ(client.stored(kGlobal).closed, "");
  client.send(std::string(64 * 1024, 'x'));
  while (client.receive_or_end()) {
  }
  EXPECT_EQ(client.close_code(), 1009);
}

TEST_F(LimitsTest, ConfiguredSizesHold) {
  const RelayRig rig(
      Flags{{"relay.event_bytes_max", "1KiB"}, {"relay.tags_max", "3"}, {"relay.filters_max", "2"}});
  NostrClient client(rig.url());
  EXPECT_EQ(client.publish(global_note(alice, std::string(1'024, 'x'))).text, "invalid: event too large");
  EXPECT_EQ(client.publish(global_note(alice, "", {{"x"}, {"x"}, {"x"}})).text, "invalid: too many tags");
  store_at(client, global_note(alice, "", {{"x"}, {"x"}}));
  const std::string two = std::string(kGlobal) + "," + kGlobal;
  EXPECT_EQ(client.stored(two).closed, "");
  EXPECT_EQ(client.stored(two + "," + kGlobal).closed, "invalid: too many filters");
}

TEST_F(LimitsTest, LimitsThatChangeHoldForConnectionsThatAreOpen) {
  RelayRig rig(Flags{{"limits.rates", "on"}});
  NostrClient client(rig.url());
  for (const auto* sub : {"a", "b", "c"}) EXPECT_EQ(client.request(sub, kGlobal).closed, "");
  for (int i = 0; i < 3; ++i) store_at(client, global_note(alice, std::to_string(i)));
  EXPECT_EQ(client.stored(global_and(R"("limit":3)")).ids.size(), 3U);
  rig.change({{"relay.event_bytes_max", "1KiB"},
              {"relay.tags_max", "3"},
              {"relay.filters_max", "2"},
              {"relay.limit_max", "2"},
              {"relay.limit_default", "1"},
              {"relay.difficulty_min", "0"},
              {"relay.created_at_past_max", "1h"},
              {"relay.subscriptions_max", "3"}});
  EXPECT_EQ(client.publish(global_note(alice, std::string(1'024, 'x'))).text, "invalid: event too large");
  EXPECT_EQ(client.publish(global_note(alice, "", {{"x"}, {"x"}, {"x"}})).text, "invalid: too many tags");
  EXPECT_EQ(client.publish(global_note(alice, "", {}, 1, unix_now() - 7'200)).text,
            "invalid: created_at out of range");
  EXPECT_EQ(client.request("d", kGlobal).closed, "restricted: too many subscriptions");
  client.send(R"(["CLOSE","c"])");
  EXPECT_EQ(client.stored(std::string(kGlobal) + "," + kGlobal + "," + kGlobal).closed,
            "invalid: too many filters");
  EXPECT_EQ(client.stored(global_and(R"("limit":3)")).ids.size(), 2U);
  EXPECT_EQ(client.stored(kGlobal).ids.size(), 1U);
  rig.change({});
  EXPECT_EQ(client.stored(global_and(R"("limit":3)")).ids.size(), 3U);
}

TEST_F(LimitsTest, RatesThatChangeHoldAtOnce) {
  RelayRig rig(Flags{{"limits.rates", "on"}});
  NostrClient client(rig.url());
  store_at(client, global_note(alice, "before"));
  rig.change({{"limits.events_per_minute", "1"}, {"limits.connections_per_minute", "1000"}});
  store_at(client, global_note(alice, "1"));
  EXPECT_EQ(client.publish(global_note(alice, "2")).text, kSlowDown);
  rig.change({{"limits.events_per_minute", "100000"}});
  // A bucket fills with the new rate.
  EXPECT_TRUE(await([&] { return client.publish(global_note(alice, "3")).accepted; }));
}

TEST_F(LimitsTest, ClientThatIsGoneWithoutAWordIsClosed) {
  const RelayRig rig(Flags{{"relay.idle_timeout", "1s"}});
  // It answers no ping: its loop runs only while the test calls it.
  const NostrClient silent(rig.url());
  EXPECT_TRUE(rig.await_metric("todoke_ws_connections", 0));
}

// For events of up to 1 MiB.
const Flags kLargest = {{"relay.event_bytes_max", "1MiB"}, {"relay.message_bytes_max", "2MiB"}};

TEST_F(LimitsTest, LargestEventThatCanBeAllowedIsStoredAndServed) {
  const auto database = std::make_shared<TestDatabase>();
  const RelayRig rig(NodeRigOptions{.roles = {}, .flags = kLargest, .database = database});
  const RelayRig elsewhere(NodeRigOptions{.roles = {}, .flags = kLargest, .database = database});
  NostrClient client(rig.url(), large_messages());
  NostrClient other(elsewhere.url(), large_messages());
  other.request("s", kGlobal);
  const auto empty = global_note(alice, "", {}, 1, 1'700'000'000);
  const auto event =
      global_note(alice, std::string(1024 * 1024 - empty.json().size(), 'x'), {}, 1, 1'700'000'000);
  store_at(client, event);
  EXPECT_EQ(other.live("s"), event.json());
  EXPECT_THAT(client.stored(kGlobal).ids, ElementsAre(hex_of(event)));
  EXPECT_THROW(RelayRig(Flags{{"relay.event_bytes_max", "2MiB"}}), UserError);
}

TEST_F(LimitsTest, ClientThatReadsNothingIsClosedAndTheOthersAreServed) {
  auto flags = kLargest;
  flags.emplace_back("relay.send_queue_bytes_max", "4MiB");
  flags.emplace_back("relay.compression", "off");
  const RelayRig rig(flags);
  auto options = large_messages();
  options.inbox_messages_max = 1;
  NostrClient stuck(rig.url(), options);
  stuck.request("s", kGlobal);
  NostrClient reader(rig.url(), large_messages());
  reader.request("s", kGlobal);
  NostrClient sender(rig.url(), large_messages());
  // Its socket takes some megabytes before anything waits in the relay.
  for (int i = 0; rig.metric("todoke_ws_slow_closed_total") == 0; ++i) {
    ASSERT_LT(i, 100);
    const auto event = global_note(alice, std::to_string(i) + std::string(900'000, 'x'));
    store_at(sender, event);
    EXPECT_EQ(id_in(reader.live("s")), hex_of(event));
  }
  EXPECT_EQ(rig.metric("todoke_ws_slow_closed_total"), 1);
}

}  // namespace
}  // namespace todoke::test
