#include "relay/read_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nostr/tag_keys.hpp"
#include "relay/test_support.hpp"

namespace todoke::relay {

void PrintTo(const Path& path, std::ostream* out) {
  *out << "path " << static_cast<int>(path);
}

namespace test {
namespace {

using nostr::Filter;
using nostr::TopicPolicy;
using testing::ElementsAre;

const std::string kHexA(64, 'a');
const std::string kHexB(64, 'b');

ReadPlan plan(const std::string& filter, TopicPolicy policy = TopicPolicy::topics) {
  return plan_read(nostr::parse_filter(filter, {}).value(), policy);
}

Path path_of(const std::string& filter, TopicPolicy policy = TopicPolicy::topics) {
  return plan(filter, policy).path;
}

std::string topic_filter(const std::string& more = "") {
  return R"({"#t":[")" + kTopicA + "\"]" + more + "}";
}

// A JSON list of `count` different values, each of 64 hex digits.
std::string hex_list(std::size_t count) {
  std::string list = "[";
  for (std::size_t i = 0; i < count; ++i) list += (i == 0 ? "\"" : ",\"") + id_of(i + 1).hex() + "\"";
  return list + "]";
}

std::string number_list(std::size_t count) {
  std::string list = "[";
  for (std::size_t i = 0; i < count; ++i) list += (i == 0 ? "" : ",") + std::to_string(i);
  return list + "]";
}

TEST(ReadPlan, AFilterThatNothingCanPassReadsNothing) {
  for (const auto* filter : {R"({"ids":[]})", R"({"authors":[]})", R"({"kinds":[]})", R"({"#t":[]})",
                             R"({"#e":[],"kinds":[1]})", R"({"since":2,"until":1})"}) {
    for (const auto policy : {TopicPolicy::topics, TopicPolicy::open}) {
      EXPECT_EQ(path_of(filter, policy), Path::nothing) << filter;
    }
  }
  EXPECT_NE(path_of(R"({"since":1,"until":1})", TopicPolicy::open), Path::nothing) << "both are inclusive";
}

TEST(ReadPlan, IdsWinOverEverythingElse) {
  EXPECT_EQ(path_of(topic_filter(R"(,"ids":[")" + kHexA + R"("],"#e":[")" + kHexB + R"("],"kinds":[1])")),
            Path::ids);
}

TEST(ReadPlan, TheTagWithTheFewestValuesWinsOverTheTopic) {
  const auto found = plan(topic_filter(R"(,"#e":[")" + kHexA + R"(",")" + kHexB + R"("],"#d":["x"])"));
  EXPECT_EQ(found.path, Path::tag);
  EXPECT_EQ(found.letter, 'd');
  EXPECT_THAT(found.values, ElementsAre("x"));
  EXPECT_FALSE(found.links_decide);
}

TEST(ReadPlan, ATagIsLookedUpByTheKeysOfTheIndex) {
  const std::string long_value(1'000, 'x');
  EXPECT_THAT(plan(R"({"#d":[")" + long_value + R"("]})").values,
              ElementsAre(nostr::tag_value_key(long_value)));
  EXPECT_THAT(plan(R"({"#t":[")" + long_value + R"("]})", TopicPolicy::open).values,
              ElementsAre(nostr::tag_value_key(long_value)));
}

TEST(ReadPlan, ATopicIsNarrowedByAuthorsThenByKinds) {
  const auto alone = plan(topic_filter());
  EXPECT_EQ(alone.path, Path::topic);
  EXPECT_THAT(alone.values, ElementsAre(kTopicA));
  EXPECT_TRUE(alone.links_decide);
  EXPECT_EQ(path_of(topic_filter(R"(,"kinds":[1])")), Path::topic_kind);
  EXPECT_EQ(path_of(topic_filter(R"(,"authors":[")" + kHexA + R"("])")), Path::topic_author);
  EXPECT_EQ(path_of(topic_filter(R"(,"kinds":[1],"authors":[")" + kHexA + R"("])")), Path::topic_author);
}

TEST(ReadPlan, LongListsAreNotLookedUpPairByPair) {
  EXPECT_EQ(path_of(topic_filter(R"(,"authors":)" + hex_list(kPairsMax))), Path::topic_author);
  EXPECT_EQ(path_of(topic_filter(R"(,"authors":)" + hex_list(kPairsMax + 1))), Path::topic);
  EXPECT_EQ(path_of(topic_filter(R"(,"authors":)" + hex_list(kPairsMax + 1) + R"(,"kinds":[1])")),
            Path::topic_kind);
  EXPECT_EQ(path_of(topic_filter(R"(,"kinds":)" + number_list(kPairsMax))), Path::topic_kind);
  EXPECT_EQ(path_of(topic_filter(R"(,"kinds":)" + number_list(kPairsMax + 1))), Path::topic);
  EXPECT_EQ(
      path_of(R"({"authors":)" + hex_list(8) + R"(,"kinds":)" + number_list(8) + "}", TopicPolicy::open),
      Path::author_kind);
  EXPECT_EQ(
      path_of(R"({"authors":)" + hex_list(8) + R"(,"kinds":)" + number_list(9) + "}", TopicPolicy::open),
      Path::author);
}

TEST(ReadPlan, InAPlainRelayTopicsAreTagsLikeOthers) {
  const auto found = plan(topic_filter(R"(,"kinds":[1])"), TopicPolicy::open);
  EXPECT_EQ(found.path, Path::t);
  EXPECT_THAT(found.values, ElementsAre(kTopicA));
  EXPECT_FALSE(found.links_decide) << "an event without a topic is linked to one that no tag of it names";
}

TEST(ReadPlan, WithoutTagsAuthorsThenKindsThenTimeDecide) {
  EXPECT_EQ(path_of(R"({"authors":[")" + kHexA + R"("],"kinds":[1]})", TopicPolicy::open), Path::author_kind);
  EXPECT_EQ(path_of(R"({"authors":[")" + kHexA + R"("]})", TopicPolicy::open), Path::author);
  EXPECT_EQ(path_of(R"({"kinds":[1]})", TopicPolicy::open), Path::kind);
  EXPECT_EQ(path_of("{}", TopicPolicy::open), Path::time);
  EXPECT_EQ(path_of(R"({"since":1,"until":2})", TopicPolicy::open), Path::time);
}

}  // namespace
}  // namespace test
}  // namespace todoke::relay
