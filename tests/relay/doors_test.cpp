// What clients pay for beside their messages: HTTP requests, the answers that they get, connections that they
// don't use.
#include <fmt/format.h>

#include "harness/hostile_client.hpp"
#include "harness/http_rig.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

class DoorsTest : public testing::Test {
 protected:
  static constexpr const char* kTooFast = "rate-limited: slow down";
  static constexpr const char* kSlowed = "todoke_ws_slowed_total";
  static constexpr const char* kUnused = "todoke_ws_unused_closed_total";

  SecretKey alice = SecretKey::generate();
  SecretKey bob = SecretKey::generate();
};

TEST_F(DoorsTest, HttpRequestsPayFromWhatQuestionsPayFrom) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "4"}});
  NostrClient client(rig.url());
  EXPECT_EQ(client.stored(kGlobal).closed, "");
  net::test::RawClient http(rig.port());
  EXPECT_EQ(http.ask(net::test::get("/", "Accept: application/nostr+json\r\n")).status, 200);
  EXPECT_EQ(http.ask(net::test::get("/relay")).status, 200);
  EXPECT_EQ(http.ask(net::test::get("/nothing")).status, 404);
  const auto refused = http.ask(net::test::get("/"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_GE(std::stoi(refused.header("Retry-After")), 1);
  EXPECT_EQ(refused.header("Access-Control-Allow-Origin"), "*");
  EXPECT_TRUE(http.ended());
  EXPECT_EQ(client.stored(kGlobal).closed, kTooFast);
  EXPECT_EQ(rig.metric("todoke_http_requests_limited_total{listener=\"public\"}"), 1);
  EXPECT_EQ(rig.metric(R"(todoke_rate_limited_total{verb="req"})"), 2);
}

TEST_F(DoorsTest, HttpRequestsBehindAProxyArePaidByTheClientThatItNames) {
  const RelayRig rig(Flags{
      {"limits.rates", "on"}, {"limits.reqs_per_minute", "2"}, {"server.trusted_proxies", "127.0.0.1"}});
  const auto status = [&](const std::string& ip) {
    net::test::RawClient http(rig.port());
    return http.ask(net::test::get("/", "X-Forwarded-For: " + ip + "\r\n")).status;
  };
  EXPECT_EQ(status("2001:db8:0:1::1"), 200);
  EXPECT_EQ(status("2001:db8:0:1::2"), 200);
  EXPECT_EQ(status("2001:db8:0:1:ffff::3"), 429);
  EXPECT_EQ(status("2001:db8:0:2::1"), 200);
}

TEST_F(DoorsTest, LargeAnswerIsPaidForByWhatIsAskedNext) {
  RelayRig rig(
      Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "10000"}, {"limits.reqs_per_minute", "3"}});
  NostrClient client(rig.url(), large_messages());
  for (int i = 0; i < 20; ++i)
    store_at(client, global_note(alice, std::to_string(i) + std::string(60'000, 'x')));
  EXPECT_EQ(client.stored(global_and(R"("limit":1)")).ids.size(), 1U);
  EXPECT_EQ(client.stored(kGlobal).ids.size(), 20U) << "1.2 MB: four tokens more";
  EXPECT_EQ(client.stored(global_and(R"("limit":1)")).closed, kTooFast);
  NostrClient other(rig.url());
  EXPECT_EQ(other.stored(global_and(R"("limit":1)")).closed, kTooFast) << "the address owes";
  // It owes three tokens at most, and gets three a minute.
  rig.clock().shift_steady(std::chrono::seconds(90));
  EXPECT_EQ(client.stored(global_and(R"("limit":1)")).ids.size(), 1U);
}

TEST_F(DoorsTest, KeyThatSignedAnEventPaysForIt) {
  const RelayRig rig(
      Flags{{"limits.rates", "on"}, {"limits.events_per_minute", "2"}, {"limits.address_factor", "100"}});
  NostrClient client(rig.url());
  EXPECT_TRUE(client.authenticate(alice).accepted);
  EXPECT_TRUE(client.authenticate(bob).accepted);
  for (int i = 0; i < 2; ++i) store_at(client, global_note(bob, std::to_string(i)));
  for (int i = 0; i < 2; ++i) store_at(client, global_note(alice, std::to_string(i)));
  EXPECT_EQ(client.publish(global_note(bob, "one too many")).text, kTooFast);
  EXPECT_EQ(client.publish(global_note(alice, "one too many")).text, kTooFast);
  // Somebody else's event is paid for by the key that was proven first.
  EXPECT_EQ(client.publish(global_note(SecretKey::generate(), "")).text, kTooFast);
}

TEST_F(DoorsTest, QuestionsThatComeInOneGoAreAllAnswered) {
  const RelayRig rig;
  NostrClient client(rig.url());
  for (int i = 0; i < 40; ++i) {
    client.send(fmt::format(R"(["REQ","r{}",{}])", i, kGlobal));
    client.send(fmt::format(R"(["COUNT","c{}",{}])", i, kGlobal));
  }
  for (int i = 0; i < 40; ++i) {
    client.receive(fmt::format(R"(["EOSE","r{}")", i));
    client.receive(fmt::format(R"(["COUNT","c{}")", i));
  }
}

TEST_F(DoorsTest, ConnectionThatAsksForNothingIsClosed) {
  RelayRig rig;
  NostrClient silent(rig.url());
  NostrClient closer(rig.url());
  closer.send(R"(["CLOSE","unknown"])");
  closer.send("what?");
  EXPECT_EQ(closer.receive(), R"(["NOTICE","invalid: message is not JSON"])");
  NostrClient reader(rig.url());
  EXPECT_EQ(reader.request("s", kGlobal).closed, "");
  NostrClient writer(rig.url());
  store_at(writer, global_note(alice, ""));
  NostrClient known(rig.url());
  EXPECT_TRUE(known.authenticate(alice).accepted);
  NostrClient counter(rig.url());
  counter.count("c", kGlobal);
  rig.clock().shift_steady(std::chrono::seconds(61));
  for (auto* client : {&silent, &closer}) {
    EXPECT_EQ(client->receive(), R"(["NOTICE","nothing was asked for"])");
    EXPECT_FALSE(client->receive_or_end().has_value());
    EXPECT_EQ(client->close_code(), 1008);
  }
  EXPECT_EQ(rig.metric(kUnused), 2);
  for (auto* client : {&reader, &writer, &known, &counter})
    EXPECT_EQ(client->stored(global_and(R"("limit":1)")).closed, "");
}

TEST_F(DoorsTest, SenderWhoGoesOnBeyondItsRateIsReadSlowlyAndOneCloseDoesNotHelp) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "1"}});
  NostrClient client(rig.url());
  EXPECT_EQ(client.request("s", kGlobal).closed, "");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client.request("s", kGlobal).closed, kTooFast);
  EXPECT_EQ(rig.metric(kSlowed), 0) << "an application that asks for much at its start";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client.request("s", kGlobal).closed, kTooFast);
  EXPECT_EQ(rig.metric(kSlowed), 2);
  client.send(R"(["CLOSE","s"])");
  EXPECT_EQ(client.request("s", kGlobal).closed, kTooFast);
  EXPECT_EQ(rig.metric(kSlowed), 3);
}

TEST_F(DoorsTest, PingsBeyondTheRateAreAnsweredOneASecond) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "1"}});
  auto hostile = HostileClient::websocket(rig.port(), "127.0.0.2");
  std::string pings;
  for (int i = 0; i < 1'000; ++i) net::append_frame(pings, 0x89, "", net::Masking::random);
  ASSERT_TRUE(hostile.write(pings));
  EXPECT_TRUE(await([&] { return rig.metric(kSlowed) >= 1; }));
  EXPECT_LT(rig.metric(R"(todoke_rate_limited_total{verb="req"})"), 500) << "most of them were not read";
  NostrClient client(rig.url());
  EXPECT_EQ(client.stored(kGlobal).closed, "");
}

TEST_F(DoorsTest, WhatASenderBeyondItsRateHasLeftBehindIsNotRead) {
  const RelayRig rig(Flags{{"limits.rates", "on"}, {"limits.reqs_per_minute", "1"}});
  {
    auto hostile = HostileClient::websocket(rig.port(), "127.0.0.2");
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(hostile.send(fmt::format(R"(["REQ","s",{}])", kGlobal)));
  }
  EXPECT_TRUE(rig.await_metric("todoke_ws_connections", 0));
  EXPECT_LT(rig.metric(R"(todoke_rate_limited_total{verb="req"})"), 50);
}

}  // namespace
}  // namespace todoke::test
