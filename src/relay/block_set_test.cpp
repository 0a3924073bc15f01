#include "relay/block_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/admission.hpp"
#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using nostr::Reason;
using testing::HasSubstr;
using testing::Optional;

const std::chrono::sys_seconds kBlockedAt{std::chrono::seconds(kNow)};

std::string value_of(BlockKind kind, std::string_view text) {
  const auto value = block_value(kind, text);
  return value ? *value : "refused: " + value.error().message;
}

TEST(BlockSet, WhatAPersonWritesHasOneForm) {
  EXPECT_EQ(value_of(BlockKind::pubkey, std::string(64, 'A')), std::string(64, 'a'));
  EXPECT_EQ(value_of(BlockKind::ip, "192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(value_of(BlockKind::ip, "::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(value_of(BlockKind::ip, "192.0.2.7/32"), "192.0.2.7");
  EXPECT_EQ(value_of(BlockKind::ip, "10.1.2.3/8"), "10.0.0.0/8");
  EXPECT_EQ(value_of(BlockKind::ip, "2001:DB8::1/32"), "2001:db8::/32");
}

TEST(BlockSet, BadInputIsRefused) {
  EXPECT_THAT(value_of(BlockKind::pubkey, "npub1abc"),
              HasSubstr("'npub1abc' is no public key: 64 hex digits"));
  EXPECT_THAT(value_of(BlockKind::event, std::string(63, 'a')), HasSubstr("is no event id"));
  EXPECT_THAT(value_of(BlockKind::ip, "example.org"), HasSubstr("is no address or block such as 10.0.0.0/8"));
  EXPECT_THAT(value_of(BlockKind::ip, "10.0.0.0/33"), HasSubstr("is no address"));
  EXPECT_THAT(value_of(BlockKind::ip, ""), HasSubstr("is no address"));
  EXPECT_THAT(value_of(BlockKind::ip, "0.0.0.0/0"), HasSubstr("blocks too many: /8 is the shortest prefix"));
  EXPECT_THAT(value_of(BlockKind::ip, "2000::/3"), HasSubstr("/16 is the shortest prefix"));
  BlockSet set;
  EXPECT_FALSE(set.add(BlockKind::pubkey, "xyz", {}));
  EXPECT_FALSE(set.add(BlockKind::ip, "xyz", {}));
}

TEST(BlockSet, KeepsOutByAuthorIdAndTopic) {
  const auto by_author = event_of(author(1), 1, {});
  const auto by_id = event_of(author(2), 1, {}, "by id");
  const auto by_topic = event_of(author(2), 1, {{"t", kTopicB}, {"t", kTopicA}});
  const auto other =
      event_of(author(2), 1, {{"t", kTopicB}, {"e", by_id->id().hex()}, {"p", author(1).pubkey().hex()}});
  BlockSet set;
  set.add(BlockKind::pubkey, author(1).pubkey().hex(), {});
  set.add(BlockKind::event, by_id->id().hex(), {});
  set.add(BlockKind::topic, kTopicA, {});
  EXPECT_THAT(set.refusal_of(*by_author, kBlockedAt), Optional(Reason::author_blocked));
  EXPECT_THAT(set.refusal_of(*by_id, kBlockedAt), Optional(Reason::event_blocked));
  EXPECT_THAT(set.refusal_of(*by_topic, kBlockedAt), Optional(Reason::topic_blocked));
  EXPECT_EQ(set.refusal_of(*other, kBlockedAt), std::nullopt);
  EXPECT_EQ(set.size(), 3U);
}

TEST(BlockSet, EndsWhenItsTimeIsOver) {
  BlockSet set;
  set.add(BlockKind::pubkey, author(1).pubkey().hex(), kBlockedAt + std::chrono::seconds(1));
  set.add(BlockKind::ip, "192.0.2.7", kBlockedAt);
  EXPECT_THAT(set.refusal_of(*event_of(author(1), 1, {}), kBlockedAt), Optional(Reason::author_blocked));
  EXPECT_EQ(set.refusal_of(*event_of(author(1), 1, {}), kBlockedAt + std::chrono::seconds(1)), std::nullopt);
  EXPECT_FALSE(set.has_address("192.0.2.7", kBlockedAt));
}

TEST(BlockSet, AddressesAreFoundByAnyPrefixOfTheirFamily) {
  BlockSet set;
  EXPECT_FALSE(set.has_address("10.9.9.9", kBlockedAt));
  for (const auto* block : {"10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "2001:db9::1"}) {
    EXPECT_TRUE(set.add(BlockKind::ip, block, {}));
  }
  for (const auto* ip : {"10.9.9.9", "::ffff:10.9.9.9", "192.0.2.7", "2001:db8:1::5", "2001:db9::1"}) {
    EXPECT_TRUE(set.has_address(ip, kBlockedAt)) << ip;
  }
  for (const auto* ip : {"11.0.0.1", "192.0.2.8", "2001:db9::2", "a00::1", "not an address", ""}) {
    EXPECT_FALSE(set.has_address(ip, kBlockedAt)) << ip;
  }
}

TEST(Admission, WhatIsBlockedIsRefusedBeforeItsSignatureIsChecked) {
  BlockSet set;
  set.add(BlockKind::pubkey, author(1).pubkey().hex(), {});
  TopicSet::Topics enabled;
  enabled.emplace(kTopicA, TopicSet::Topic{});
  const TopicSettings plain;
  const TopicSet topics(plain, {}, std::move(enabled));
  KnownIds known;
  const auto event = event_of(author(1), 1, {{"t", kTopicA}});
  known.add(event->id());
  const auto admitted = admit(event, Source::gossip, {}, {}, set, {}, topics, known, kBlockedAt);
  ASSERT_FALSE(admitted);
  EXPECT_EQ(admitted.error(), Reason::author_blocked) << "not a duplicate either";
}

}  // namespace
}  // namespace todoke::relay::test
