// Messages as such: what is understood, what is answered to what is not, subscription ids.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class ProtocolTest : public TopicsTest {
 protected:
  std::string answer_to(const std::string& message) {
    client.send(message);
    return client.receive();
  }
};

TEST_F(ProtocolTest, ChallengeComesFirstAndDiffersForEverybody) {
  const NostrClient other(rig.url());
  EXPECT_EQ(client.challenge().size(), 32U);
  EXPECT_NE(client.challenge(), other.challenge());
}

TEST_F(ProtocolTest, RootAndRelayAreTheSameEndpoint) {
  NostrClient at_root(rig.url("/"));
  const auto event = global_note(alice, "hello");
  store_at(at_root, event);
  EXPECT_THAT(client.stored(by_id(event)).ids, ElementsAre(hex_of(event)));
}

TEST_F(ProtocolTest, WhatNobodyUnderstandsGetsANoticeAndTheConnectionLivesOn) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "invalid: message is not JSON"},
      {"hello", "invalid: message is not JSON"},
      {R"(["CLOSE","a"] trailing)", "invalid: message is not JSON"},
      {R"(["REQ","a",{"kinds":[1})", "invalid: message is not JSON"},
      {R"(["REQ","a",{"kinds":[01]}])", "invalid: message is not JSON"},
      {R"({"a":1})", "invalid: message must be an array"},
      {R"("EVENT")", "invalid: message must be an array"},
      {"[]", "invalid: missing message element"},
      {"[1]", "invalid: unknown message type"},
      {R"(["HELLO"])", "invalid: unknown message type"},
      {R"(["event",{}])", "invalid: unknown message type"},
      {std::string(40, '[') + std::string(40, ']'), "invalid: message too deep"},
      {"[\"" + std::string(128 * 1024, 'x') + "\"]", "invalid: message too long"},
      {R"(["CLOSE"])", "invalid: missing message element"},
      {R"(["CLOSE",""])", "invalid: subscription id must be 1 to 64 characters"},
      {R"(["CLOSE","a","b"])", "invalid: too many message elements"},
      {R"(["REQ"])", "invalid: missing message element"},
      {R"(["REQ",5,{}])", "invalid: subscription id must be 1 to 64 characters"},
      {R"(["REQ",null])", "invalid: subscription id must be 1 to 64 characters"},
      {R"(["COUNT"])", "invalid: missing message element"},
  };
  for (const auto& [message, text] : cases) {
    EXPECT_EQ(answer_to(message), fmt::format(R"(["NOTICE","{}"])", text)) << message.substr(0, 60);
  }
  client.send_binary("[]");
  EXPECT_EQ(client.receive(), R"(["NOTICE","invalid: message must be text, not binary"])");
  EXPECT_EQ(client.stored(kGlobal).closed, "");
}

TEST_F(ProtocolTest, EventThatIsNoneGetsAnOkThatNamesWhatItCan) {
  EXPECT_EQ(answer_to(R"(["EVENT"])"), R"(["OK","",false,"invalid: missing message element"])");
  EXPECT_EQ(answer_to(R"(["EVENT",5])"), R"(["OK","",false,"invalid: event must be an object"])");
  EXPECT_EQ(answer_to(R"(["EVENT",{}])"), R"(["OK","",false,"invalid: missing event member"])");
  EXPECT_EQ(answer_to(R"(["EVENT",{"id":"abc"}])"),
            R"(["OK","abc",false,"invalid: id must be 64 lower-case hex digits"])");
  const auto event = global_note(alice, "two of them");
  EXPECT_EQ(answer_to(fmt::format(R"(["EVENT",{0},{0}])", event.json())),
            fmt::format(R"(["OK","{}",false,"invalid: too many message elements"])", hex_of(event)));
  EXPECT_EQ(answer_to(R"(["AUTH"])"), R"(["OK","",false,"invalid: missing message element"])");
  EXPECT_EQ(answer_to(R"(["AUTH","challenge"])"), R"(["OK","",false,"invalid: event must be an object"])");
}

TEST_F(ProtocolTest, EveryEventGetsExactlyOneOk) {
  const auto good = global_note(alice, "good");
  const auto no_topic = note(alice, "no topic", {});
  auto forged = std::string(global_note(alice, "forged").json());
  forged.replace(forged.find("forged"), 6, "forger");
  const std::string sent[] = {
      std::string(good.json()),     std::string(good.json()), forged,
      std::string(no_topic.json()), R"({"id":"x"})",          std::string(good.json())};
  for (const auto& json : sent) client.send("[\"EVENT\"," + json + "]");
  std::vector<std::string> got;
  for (std::size_t i = 0; i < std::size(sent); ++i) got.push_back(client.receive());
  const auto ok = [](const std::string& id, bool accepted, std::string_view text) {
    return fmt::format(R"(["OK","{}",{},"{}"])", id, accepted, text);
  };
  EXPECT_THAT(got, testing::UnorderedElementsAre(
                       ok(hex_of(good), true, ""), ok(hex_of(good), true, "duplicate: already stored"),
                       ok(hex_of(good), true, "duplicate: already stored"),
                       ok(id_in(forged), false, "invalid: bad id"),
                       ok(hex_of(no_topic), false, "invalid: missing topic"),
                       ok("x", false, "invalid: id must be 64 lower-case hex digits")));
  EXPECT_THAT(client.drain(), IsEmpty());
}

TEST_F(ProtocolTest, EventsAreStoredThoughTheSenderHangsUpAtOnce) {
  {
    NostrClient hasty(rig.url());
    for (int i = 0; i < 20; ++i) {
      hasty.send(fmt::format(R"(["EVENT",{}])", global_note(alice, fmt::format("{}", i)).json()));
    }
    hasty.close();
  }
  EXPECT_EQ(rig.await_sql("SELECT count(*) FROM cn_relay.events", {"20"}), Rows{"20"});
}

TEST_F(ProtocolTest, SubscriptionIdIsAnyTextOfUpTo64Characters) {
  const auto event = global_note(alice, "hello");
  store(event);
  std::string wide;
  for (int i = 0; i < 64; ++i) wide += "😀";
  // As they stand in JSON; the relay writes them back in the canonical form.
  const std::string subs[] = {R"("s")",
                              '"' + std::string(64, 'x') + '"',
                              '"' + wide + '"',
                              R"(" ")",
                              R"("quote \" and backslash \\")",
                              R"("line\nbreak\ttab\u0000nul\u001f")",
                              R"("日本語/ключ")",
                              R"("{\"ids\":[]}")"};
  for (const auto& sub : subs) {
    client.send(fmt::format(R"(["REQ",{},{}])", sub, by_id(event)));
    EXPECT_EQ(client.receive(), fmt::format(R"(["EVENT",{},{}])", sub, event.json()));
    EXPECT_THAT(client.receive(), StartsWith(fmt::format(R"(["EOSE",{},)", sub)));
    EXPECT_EQ(answer_to(fmt::format(R"(["COUNT",{},{}])", sub, by_id(event))),
              fmt::format(R"(["COUNT",{},{{"count":1}}])", sub));
    EXPECT_EQ(answer_to(fmt::format(R"(["REQ",{},{{"kinds":[1]}}])", sub)),
              fmt::format(R"(["CLOSED",{},"invalid: #t required"])", sub));
  }
  client.send(fmt::format(R"(["REQ","\u0041\/",{}])", by_id(event)));
  EXPECT_EQ(client.receive(), fmt::format(R"(["EVENT","A/",{}])", event.json()));
}

TEST_F(ProtocolTest, SubscriptionIdOfNoneOrMoreThan64CharactersIsRefused) {
  for (const auto* verb : {"REQ", "COUNT"}) {
    for (const auto& sub : {std::string(), std::string(65, 'x')}) {
      EXPECT_EQ(answer_to(fmt::format(R"(["{}","{}",{}])", verb, sub, kGlobal)),
                fmt::format(R"(["CLOSED","{}","invalid: subscription id must be 1 to 64 characters"])", sub));
    }
    // Not worth sending back.
    EXPECT_EQ(answer_to(fmt::format(R"(["{}","{}",{}])", verb, std::string(600, 'x'), kGlobal)),
              R"(["NOTICE","invalid: subscription id must be 1 to 64 characters"])");
  }
}

TEST_F(ProtocolTest, CloseEndsASubscription) {
  client.request("ended", kGlobal);
  client.request("kept", kGlobal);
  client.send(R"(["CLOSE","ended"])");
  client.send(R"(["CLOSE","never opened"])");
  const auto event = global_note(alice, "after the close");
  store(event);
  EXPECT_EQ(client.receive(), fmt::format(R"(["EVENT","kept",{}])", event.json()));
  EXPECT_EQ(rig.metric("todoke_ws_subscriptions"), 1);
}

TEST_F(ProtocolTest, EndOfAConnectionEndsItsSubscriptions) {
  {
    NostrClient other(rig.url());
    other.request("a", kGlobal);
    other.request("b", kGlobal);
    EXPECT_EQ(rig.metric("todoke_ws_subscriptions"), 2);
    EXPECT_EQ(rig.metric("todoke_ws_connections"), 2);
    other.close();
  }
  EXPECT_TRUE(rig.await_metric("todoke_ws_subscriptions", 0));
  EXPECT_TRUE(rig.await_metric("todoke_ws_connections", 1));
}

TEST_F(ProtocolTest, SenderOfNothingButGarbageIsClosed) {
  for (int i = 0; i < 100; ++i) client.send("garbage");
  std::vector<std::string> got;
  while (const auto message = client.receive_or_end()) got.push_back(*message);
  ASSERT_EQ(got.size(), 101U);
  EXPECT_EQ(got[99], R"(["NOTICE","invalid: message is not JSON"])");
  EXPECT_EQ(got[100], R"(["NOTICE","too many messages that can't be understood"])");
  EXPECT_EQ(client.close_code(), 1008);
}

TEST_F(ProtocolTest, GoodMessageInBetweenShowsThatItIsAClient) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 99; ++i) client.send("garbage");
    for (int i = 0; i < 99; ++i) EXPECT_THAT(client.receive(), StartsWith(R"(["NOTICE",)"));
    EXPECT_EQ(client.stored(kGlobal).closed, "");
  }
}

TEST_F(ProtocolTest, CompressionIsAgreedOnUnlessItIsOff) {
  EXPECT_TRUE(client.compressed());
  const RelayRig plain(Flags{{"relay.compression", "off"}});
  const NostrClient other(plain.url());
  EXPECT_FALSE(other.compressed());
}

TEST_F(ProtocolTest, LargeEventsSurviveCompression) {
  std::string content;
  for (int i = 0; i < 5'000; ++i) content += fmt::format("{} ", i);
  const auto event = global_note(alice, content);
  store(event);
  EXPECT_THAT(client.stored(by_id(event)).events, ElementsAre(std::string(event.json())));
}

}  // namespace
}  // namespace todoke::test
