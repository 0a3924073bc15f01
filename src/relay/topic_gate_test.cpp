#include "relay/topic_gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/store_model.hpp"
#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const TopicSettings kSettings;

TopicSet set_of(const std::string& topic, TopicLimits limits) {
  TopicSet::Topics topics;
  topics.emplace(topic, TopicSet::Topic{.limits = limits});
  topics.emplace(kTopicB, TopicSet::Topic{});
  return {kSettings, {}, std::move(topics)};
}

Incoming event_in(std::vector<std::string> topics, std::string content = "") {
  auto incoming = incoming_of(event_of(author(1), 1, {}, std::move(content)));
  incoming.topics = std::move(topics);
  return incoming;
}

std::vector<Incoming> events_in(std::size_t count, const std::vector<std::string>& topics) {
  std::vector<Incoming> events;
  for (std::size_t i = 0; i < count; ++i) events.push_back(event_in(topics, std::to_string(i)));
  return events;
}

HashMap<std::string, TopicUse> holding(std::int64_t events) {
  HashMap<std::string, TopicUse> use;
  use.emplace(kTopicA, TopicUse{events, 0});
  return use;
}

TEST(TopicGate, LetsInWhatThereIsRoomForAndNotOneMore) {
  const auto topics = set_of(kTopicA, {.events_max = 10});
  TopicGate gate;
  gate.set_use(holding(7));
  auto batch = events_in(5, {kTopicA});
  EXPECT_EQ(gate.keep_out(batch, topics).size(), 2U);
  EXPECT_EQ(batch.size(), 3U);
}

TEST(TopicGate, AFullTopicTakesARequestToVanish) {
  const auto topics = set_of(kTopicA, {.events_max = 1});
  TopicGate gate;
  gate.set_use(holding(1));
  auto batch = events_in(1, {kTopicA});
  batch.push_back(incoming_of(event_of(author(1), nostr::kVanish, {})));
  batch.back().topics = {kTopicA};
  EXPECT_EQ(gate.keep_out(batch, topics).size(), 1U);
  ASSERT_EQ(batch.size(), 1U);
  EXPECT_EQ(batch.front().event->kind(), nostr::kVanish);
}

TEST(TopicGate, WhatWasNotStoredTakesNoRoom) {
  const auto topics = set_of(kTopicA, {.events_max = 3});
  TopicGate gate;
  auto batch = events_in(3, {kTopicA});
  EXPECT_THAT(gate.keep_out(batch, topics), IsEmpty());
  gate.add(batch.front(), topics);  // the others were duplicates
  auto more = events_in(3, {kTopicA});
  EXPECT_EQ(gate.keep_out(more, topics).size(), 1U);
}

TEST(TopicGate, AnEventOfTwoTopicsKeepsTheOneWithRoom) {
  const auto topics = set_of(kTopicA, {.events_max = 1});
  TopicGate gate;
  gate.set_use(holding(1));
  auto batch = events_in(1, {kTopicA, kTopicB});
  EXPECT_THAT(gate.keep_out(batch, topics), IsEmpty());
  ASSERT_EQ(batch.size(), 1U);
  EXPECT_THAT(batch.front().topics, ElementsAre(kTopicB));
}

TEST(TopicGate, BytesAreLimitedToo) {
  const auto one = event_in({kTopicA}, std::string(500, 'x'));
  const auto size = use_of(one).bytes;
  EXPECT_FALSE(is_full({.bytes_max = 2 * size}, {1, size}, use_of(one)));
  EXPECT_TRUE(is_full({.bytes_max = 2 * size - 1}, {1, size}, use_of(one)));
}

TEST(TopicGate, ATopicThatDropsItsOldestTakesATenthMoreAtMost) {
  const TopicLimits limits{.events_max = 10'000, .drop_oldest = true};
  EXPECT_FALSE(is_full(limits, {10'999, 0}, {1, 0}));
  EXPECT_TRUE(is_full(limits, {11'000, 0}, {1, 0}));
  const TopicLimits small{.events_max = 10, .drop_oldest = true};
  EXPECT_FALSE(is_full(small, {109, 0}, {1, 0}));
  EXPECT_TRUE(is_full(small, {110, 0}, {1, 0}));
}

TEST(TopicGate, WithoutLimitsNothingIsKeptOut) {
  const auto topics = set_of(kTopicA, {});
  EXPECT_FALSE(topics.has_limits());
  TopicGate gate;
  gate.set_use(holding(1'000'000'000));
  auto batch = events_in(2, {kTopicA});
  EXPECT_THAT(gate.keep_out(batch, topics), IsEmpty());
  EXPECT_EQ(batch.size(), 2U);
}

}  // namespace
}  // namespace todoke::relay::test
