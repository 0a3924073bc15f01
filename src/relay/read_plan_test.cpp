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
using testing::IsEmpty;
using testing::Not;

const std::string kHexA(64, 'a');
const std::string kHexB(64, 'b');

ReadPlan plan(const std::string& filter, TopicPolicy policy = TopicPolicy::topics) {
  return plan_read(nostr::parse_filter(filter, {}).value(), policy);
}

std::vector<Path> paths_of(const std::string& filter, TopicPolicy policy = TopicPolicy::topics) {
  std::vector<Path> paths;
  for (const auto& way : plan(filter, policy).ways) paths.push_back(way.path);
  return paths;
}

// The one way that there is.
Path path_of(const std::string& filter, TopicPolicy policy = TopicPolicy::topics) {
  const auto paths = paths_of(filter, policy);
  if (paths.size() != 1) throw std::logic_error(std::to_string(paths.size()) + " ways");
  return paths.front();
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
      EXPECT_THAT(paths_of(filter, policy), IsEmpty()) << filter;
    }
  }
  EXPECT_THAT(paths_of(R"({"since":1,"until":1})", TopicPolicy::open), Not(IsEmpty()))
      << "both are inclusive";
}

TEST(ReadPlan, IdsWinOverEverythingElse) {
  EXPECT_EQ(path_of(topic_filter(R"(,"ids":[")" + kHexA + R"("],"#e":[")" + kHexB + R"("],"kinds":[1])")),
            Path::ids);
}

TEST(ReadPlan, TagsAreTriedBeforeTheTopicThoseWithFewValuesFirst) {
  const auto found = plan(topic_filter(R"(,"#e":[")" + kHexA + R"(",")" + kHexB + R"("],"#k":["1"])"));
  ASSERT_EQ(found.ways.size(), 3U);
  EXPECT_EQ(found.ways[0].path, Path::tag);
  EXPECT_EQ(found.ways[0].letter, 'k');
  EXPECT_THAT(found.ways[0].values, ElementsAre("1"));
  EXPECT_EQ(found.ways[1].letter, 'e');
  EXPECT_EQ(found.ways[2].path, Path::topic);
  EXPECT_THAT(found.ways[2].values, ElementsAre(kTopicA));
  EXPECT_FALSE(found.links_decide);
}

TEST(ReadPlan, AFewAuthorsAreTriedBeforeTags) {
  const auto author = R"(,"authors":[")" + kHexA + R"("],"kinds":[30023],"#d":["x"])";
  EXPECT_THAT(paths_of(topic_filter(author)), ElementsAre(Path::topic_author, Path::tag));
  EXPECT_THAT(paths_of(topic_filter(author), TopicPolicy::open),
              ElementsAre(Path::author_kind, Path::tag, Path::t));
  EXPECT_THAT(paths_of(R"({"#d":["x"],"authors":)" + hex_list(kPairsMax + 1) + "}", TopicPolicy::open),
              ElementsAre(Path::tag, Path::author))
      << "many authors are no better than a tag";
}

TEST(ReadPlan, KindsAndTimesAreNotTriedBesideATag) {
  EXPECT_THAT(paths_of(R"({"#e":[")" + kHexA + R"("],"kinds":[1],"since":1})", TopicPolicy::open),
              ElementsAre(Path::tag));
}

TEST(ReadPlan, WithoutATopicTheEventsOfTheNodesKeysAreFoundByTheirMark) {
  const auto found = plan(R"({"authors":[")" + kHexA + R"("],"kinds":[1]})");
  ASSERT_EQ(found.ways.size(), 1U);
  EXPECT_EQ(found.ways[0].path, Path::tag);
  EXPECT_EQ(found.ways[0].letter, kOwnMark);
  EXPECT_THAT(found.ways[0].values, ElementsAre(kHexA));
  EXPECT_TRUE(found.by_mark);
  EXPECT_FALSE(found.links_decide);
  EXPECT_THAT(paths_of(R"({"authors":[")" + kHexA + R"("],"#d":["x"]})"), ElementsAre(Path::tag, Path::tag));
  EXPECT_FALSE(plan(topic_filter(R"(,"authors":[")" + kHexA + R"("])")).by_mark);
}

TEST(ReadPlan, NoMoreWaysThanTheLimitAreTried) {
  const auto paths = paths_of(topic_filter(R"(,"#a":["1"],"#b":["1"],"#c":["1"],"#d":["1"],"#f":["1"])"));
  EXPECT_EQ(paths.size(), kWaysMax);
  EXPECT_EQ(paths.back(), Path::topic) << "the topic is always among them";
}

TEST(WayChoice, TriesEachForAPageAndKeepsTheOneThatGetsFurther) {
  WayChoice choice(3);
  EXPECT_EQ(choice.next(), 0U);
  choice.advanced(10, 100);
  EXPECT_EQ(choice.next(), 1U);
  choice.advanced(300, 1'000);
  EXPECT_EQ(choice.next(), 2U);
  choice.advanced(200, 1'000);
  EXPECT_EQ(choice.next(), 1U);
  choice.advanced(0, 1'000);
  EXPECT_EQ(choice.next(), 1U) << "a dense page does not start the search again";
}

TEST(WayChoice, OfOneWayIsThatWay) {
  WayChoice choice(1);
  EXPECT_EQ(choice.next(), 0U);
  choice.advanced(0, 0);
  EXPECT_EQ(choice.next(), 0U);
}

TEST(ReadPlan, ATagIsLookedUpByTheKeysOfTheIndex) {
  const std::string long_value(1'000, 'x');
  EXPECT_THAT(plan(R"({"#d":[")" + long_value + R"("]})").ways.front().values,
              ElementsAre(nostr::tag_value_key(long_value)));
  EXPECT_THAT(plan(R"({"#t":[")" + long_value + R"("]})", TopicPolicy::open).ways.front().values,
              ElementsAre(nostr::tag_value_key(long_value)));
}

TEST(ReadPlan, ATopicIsNarrowedByAuthorsThenByKinds) {
  const auto alone = plan(topic_filter());
  EXPECT_EQ(alone.ways.front().path, Path::topic);
  EXPECT_THAT(alone.ways.front().values, ElementsAre(kTopicA));
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
  ASSERT_EQ(found.ways.size(), 1U);
  EXPECT_EQ(found.ways.front().path, Path::t);
  EXPECT_THAT(found.ways.front().values, ElementsAre(kTopicA));
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
