#include "app/topic_ids.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/keys.hpp"

namespace todoke::app {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Config with_mapping(const char* mapping) {
  Config config(schema());
  config.set_flag("topics.mapping", mapping);
  return config;
}

std::vector<std::string> texts(const std::vector<nostr::TopicId>& ids) {
  std::vector<std::string> all;
  for (const auto& id : ids) all.push_back(id.text());
  return all;
}

TEST(TopicIdsTest, ATopicIdStandsForItselfByEveryMapping) {
  const auto hex = "kukuri:" + std::string(64, 'a');
  for (const auto& id : {std::string("kukuri:global"), hex}) {
    EXPECT_EQ(texts(topic_ids(with_mapping("both"), id)), std::vector{id});
  }
}

TEST(TopicIdsTest, ANameStandsForItsIdByEachMappingInUse) {
  const auto v1 = texts(topic_ids(with_mapping("v1"), "Bitcoin"));
  const auto v2 = texts(topic_ids(with_mapping("v2"), "Bitcoin"));
  ASSERT_EQ(v1.size(), 1U);
  ASSERT_EQ(v2.size(), 1U);
  EXPECT_NE(v1, v2);
  EXPECT_EQ(texts(topic_ids(with_mapping("both"), "Bitcoin")), (std::vector{v1[0], v2[0]}));
}

TEST(TopicIdsTest, TheNetworkKeepsNamesApart) {
  auto config = with_mapping("v1");
  const auto main = texts(topic_ids(config, "Bitcoin"));
  config.set_flag("topics.network_id", "kukuri:other:");
  EXPECT_NE(texts(topic_ids(config, "Bitcoin")), main);
}

TEST(TopicIdsTest, AReservedTopicStandsForItself) {
  auto config = with_mapping("v1");
  EXPECT_THROW(topic_ids(config, "kukuri:news"), UserError);
  config.set_flag("topics.reserved", "kukuri:news");
  EXPECT_EQ(texts(topic_ids(config, "kukuri:news")), std::vector<std::string>{"kukuri:news"});
}

TEST(TopicIdsTest, WhatLooksLikeAnIdIsNotTakenForAName) {
  EXPECT_THAT([] { topic_ids(with_mapping("v1"), "kukuri:abc"); },
              ThrowsMessage<UserError>(HasSubstr("kukuri:abc: no topic id")));
  EXPECT_THROW(topic_ids(with_mapping("v1"), ""), UserError);
}

}  // namespace
}  // namespace todoke::app
