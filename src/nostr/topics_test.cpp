#include "nostr/topics.hpp"

#include "base/bytes.hpp"
#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

constexpr std::string_view kMain = "kukuri:main:";

std::string id_of(std::string_view name, std::string_view network = kMain) {
  const auto topic = topic_id_of_name(network, name);
  return topic ? topic->text() : topic.error().message;
}

// The published vectors: the input counts 0 to 250 again and again.
TEST(Blake3, GivesThePublishedHashes) {
  const std::vector<std::pair<std::size_t, std::string_view>> vectors = {
      {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
      {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
      {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
      {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
      {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
      {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
      {4097, "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995"},
      {8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b"},
      {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
      {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
  };
  for (const auto& [size, hash] : vectors) {
    std::vector<std::uint8_t> input(size);
    for (std::size_t i = 0; i < size; ++i) input[i] = static_cast<std::uint8_t>(i % 251);
    EXPECT_EQ(to_hex(blake3(input)), hash) << size;
  }
}

TEST(Topics, AreToldFromHashtags) {
  for (const auto& good :
       {"kukuri:" + test::kHexA, std::string("kukuri:global"), "kukuri:user:" + test::kHexB}) {
    EXPECT_TRUE(is_topic_id(good)) << good;
    EXPECT_TRUE(TopicId::from(good)) << good;
  }
  for (const auto& bad :
       {std::string(), std::string("kukuri:"), std::string("bitcoin"), "kukuri:" + test::kHexA + "a",
        "kukuri:" + test::kHexA.substr(1), "kukuri:" + std::string(64, 'A'), "Kukuri:" + test::kHexA,
        std::string(" kukuri:global"), std::string("kukuri:global "), std::string("kukuri:Global"),
        std::string("kukuri:user:"), "kukuri:user:" + std::string(64, 'F'),
        "kukuri:user:" + test::kHexA + ":x", test::kHexA, std::string("kukuri:user:global"),
        "kukuri:" + test::kHexA + std::string(1, '\0')}) {
    EXPECT_FALSE(is_topic_id(bad)) << bad;
    EXPECT_FALSE(TopicId::from(bad)) << bad;
  }
}

TEST(Topics, ReservedOnesCountAsTopics) {
  const std::vector<std::string> reserved = {"kukuri:announcements"};
  EXPECT_TRUE(is_topic_id("kukuri:announcements", reserved));
  EXPECT_FALSE(is_topic_id("kukuri:announcement", reserved));
  EXPECT_FALSE(is_topic_id("kukuri:announcements"));
}

TEST(Topics, OfAnEventComeOnceAndInOrder) {
  const auto event = test::event_with(1, {{"t", "bitcoin"},
                                          {"t", test::kTopic},
                                          {"t"},
                                          {"t", "kukuri:global", "x"},
                                          {"t", test::kTopic},
                                          {"T", "kukuri:" + test::kHexB}});
  std::vector<std::string> texts;
  for (const auto& topic : topics_of(event)) texts.push_back(topic.text());
  EXPECT_EQ(texts, (std::vector<std::string>{test::kTopic, "kukuri:global"}));
  EXPECT_TRUE(has_topic(event));
  EXPECT_FALSE(has_topic(test::event_with(1, {{"t", "bitcoin"}, {"x", test::kTopic}})));
}

TEST(TopicNames, BecomeIds) {
  EXPECT_EQ(id_of("Bitcoin"), "kukuri:6a54d8878560a94315b9b702f62f989ee2e1ee75a8b04e5b5d372e9877f27eb3");
  EXPECT_NE(id_of("Bitcoin", "kukuri:dev:"), id_of("Bitcoin"));
}

TEST(TopicNames, BecomeOtherIdsInTheSecondMapping) {
  const auto v2 = [](std::string_view network, std::string_view name) {
    return topic_id_of_name(network, name, TopicMapping::v2)->text();
  };
  constexpr std::string_view kHashed("kukuri:topic:v2\0kukuri:main:\0bitcoin", 36);
  EXPECT_EQ(v2(kMain, " Bitcoin"), "kukuri:" + to_hex(blake3(as_bytes(kHashed))));
  EXPECT_NE(v2(kMain, "Bitcoin"), id_of("Bitcoin"));
  EXPECT_EQ(topic_id_of_name(kMain, "Bitcoin", TopicMapping::v1)->text(), id_of("Bitcoin"));
  EXPECT_EQ(v2(kMain, test::kTopic), test::kTopic) << "an id is no name";
  EXPECT_FALSE(topic_id_of_name(kMain, " ", TopicMapping::v2));
  EXPECT_EQ(id_of("ab", "n"), id_of("b", "na")) << "the first mapping can't tell these apart";
  EXPECT_NE(v2("n", "ab"), v2("na", "b"));
}

TEST(TopicNames, ThatLookTheSameAreTheSame) {
  for (const auto* name :
       {"bitcoin", "BITCOIN", "  Bitcoin\t\n", "\u3000Ｂｉｔｃｏｉｎ\u00a0", "\u2003bitcoin"}) {
    EXPECT_EQ(id_of(name), id_of("Bitcoin")) << name;
  }
  EXPECT_EQ(id_of("ﾋﾞｯﾄｺｲﾝ"), id_of("ビットコイン")) << "half width";
  EXPECT_EQ(id_of("e\u0301"), id_of("É"));
  EXPECT_NE(id_of("bit coin"), id_of("bitcoin"));
  EXPECT_EQ(*normal_topic_name("ΟΔΟΣ"), "οδος") << "the sigma at the end";
  EXPECT_EQ(*normal_topic_name("Ⅷ ﬁ"), "viii fi");
}

TEST(TopicNames, ThatAreIdsAlreadyStayThemselves) {
  EXPECT_EQ(id_of(test::kTopic), test::kTopic);
  EXPECT_EQ(id_of(" kukuri:global "), "kukuri:global");
}

TEST(TopicNames, ThatAreNoneAreRefused) {
  EXPECT_EQ(id_of(""), "a topic name must not be empty");
  EXPECT_EQ(id_of(" \u3000\n"), "a topic name must not be empty");
  EXPECT_EQ(id_of("a\xff"), "a topic name must be UTF-8");
  EXPECT_EQ(id_of(std::string(1025, 'a')), "a topic name has at most 1024 bytes");
  EXPECT_EQ(id_of(std::string(1024, 'a')).size(), 71U);
}

TEST(GossipTopics, AreTheHashInTheIdOrTheHashOfTheId) {
  EXPECT_EQ(to_hex(gossip_topic_id(*TopicId::from(test::kTopic))), test::kHexA);
  EXPECT_EQ(to_hex(gossip_topic_id(TopicId::global())),
            "6040b66666984ed2b45873182432d1c1378f8430cfc1ecb718f61468b6c60b1b");
  const auto user = "kukuri:user:" + test::kHexA;
  EXPECT_EQ(gossip_topic_id(*TopicId::from(user)), blake3(as_bytes(user)));
}

}  // namespace
}  // namespace todoke::nostr
