#include "gossip/fill_wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::gossip {
namespace {

using testing::SizeIs;
using Verb = nostr::RelayMessage::Verb;

const std::string kAskedTopic = "kukuri:global";
const nostr::EventId kOneId = nostr::EventId::from_hex(std::string(64, 'a')).value();
const nostr::EventId kOtherId = nostr::EventId::from_hex(std::string(64, 'b')).value();

template <class Kind>
Kind read_as(const std::string& text) {
  return std::get<Kind>(read_question(text).value());
}

TEST(FillWire, QuestionsAreReadAsTheyWereWritten) {
  const auto open = read_as<OpenQuestion>(open_question({kAskedTopic, 10, 20}, "\x61set"));
  EXPECT_EQ(open.span.topic, kAskedTopic);
  EXPECT_EQ(open.span.since, 10);
  EXPECT_EQ(open.span.until, 20);
  EXPECT_EQ(open.message, "\x61set");
  EXPECT_EQ(read_as<NextQuestion>(next_question("\x61more")).message, "\x61more");
  const std::vector ids{kOneId, kOtherId};
  const auto wanted = read_as<EventsQuestion>(events_question(kAskedTopic, ids));
  EXPECT_EQ(wanted.topic, kAskedTopic);
  EXPECT_EQ(wanted.ids, ids);
  EXPECT_EQ(read_as<NewsQuestion>(news_question(kAskedTopic)).topic, kAskedTopic);
}

TEST(FillWire, WhatAsksForAnythingElseIsNoQuestion) {
  const std::string id(64, 'a');
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string(R"(["EVENT",{}])"),
        std::string(R"(["REQ","fill",{"#t":["kukuri:global"]}])"),
        R"(["REQ","fill",{"ids":[")" + id + R"("]}])",
        R"(["REQ","fill",{"ids":[")" + id + R"("],"#t":["a","b"]}])",
        R"(["REQ","fill",{"ids":[")" + id + R"("],"#t":["a"]},{"ids":[")" + id + R"("],"#t":["b"]}])",
        std::string(R"(["NEG-OPEN","fill",{},"61"])"),
        std::string(R"(["NEG-OPEN","fill",{"#t":["a"],"authors":[]},"61"])"),
        std::string(R"(["NEG-OPEN","fill",{"#t":["a"]},"xx"])"), std::string(R"(["NEWS",1])"),
        std::string(R"(["NEWS","a","b"])"), std::string(300'000, 'x')}) {
    EXPECT_FALSE(read_question(text)) << text.substr(0, 100);
  }
}

TEST(FillWire, AnswersAreReadAsTheyWereWritten) {
  const auto set = read_answer(set_answer("\x61\x02"));
  ASSERT_TRUE(set);
  ASSERT_THAT(*set, SizeIs(1));
  EXPECT_EQ(message_of(set->front()), "\x61\x02");
  const std::string_view events[] = {R"({"id":"1"})", R"({"id":"2"})"};
  const auto given = read_answer(events_answer(events, true));
  ASSERT_TRUE(given);
  ASSERT_THAT(*given, SizeIs(3));
  EXPECT_EQ((*given)[0].json, events[0]);
  EXPECT_EQ((*given)[1].json, events[1]);
  EXPECT_EQ(given->back().verb, Verb::eose);
  EXPECT_NE(given->back().json.find("\"more\""), std::string::npos);
  EXPECT_EQ(read_answer(set_refusal(nostr::Reason::rate_limited))->front().verb, Verb::neg_err);
  EXPECT_EQ(read_answer(events_refusal(nostr::Reason::topic_not_enabled))->front().verb, Verb::closed);
}

TEST(FillWire, GarbageIsNoAnswer) {
  EXPECT_FALSE(read_answer("garbage"));
  EXPECT_FALSE(read_answer(set_answer("a") + "\n{}"));
  EXPECT_THAT(read_answer("").value(), SizeIs(0));
}

}  // namespace
}  // namespace todoke::gossip
