#include "relay/link_count.hpp"

#include <gtest/gtest.h>

namespace todoke::relay {
namespace {

using nostr::TopicPolicy;

nostr::Filter by_topic() {
  nostr::Filter filter;
  filter.tags.push_back({'t', nostr::SortedSet<std::string>({"kukuri:global"})});
  return filter;
}

TEST(LinkCount, TopicsTimesKindsAndAuthorsAreDecidedByLinks) {
  auto other = by_topic();
  other.since = 5;
  other.kinds = nostr::SortedSet<nostr::Kind>({1, 7});
  EXPECT_TRUE(link_count({by_topic(), other}, TopicPolicy::topics, Viewer{}).has_value());
}

TEST(LinkCount, OneFilterThatNeedsEventsIsEnough) {
  auto tagged = by_topic();
  tagged.tags.push_back({'e', nostr::SortedSet<std::string>({"x"})});
  EXPECT_FALSE(link_count({by_topic(), tagged}, TopicPolicy::topics, Viewer{}).has_value());
  auto after = by_topic();
  after.seq_after = nostr::Seq{3};
  EXPECT_FALSE(link_count({by_topic(), after}, TopicPolicy::topics, Viewer{}).has_value());
  EXPECT_FALSE(link_count({by_topic()}, TopicPolicy::open, Viewer{}).has_value());
}

TEST(LinkCount, AFilterThatMatchesNothingIsLeftOut) {
  auto nothing = by_topic();
  nothing.since = 5;
  nothing.until = 4;
  EXPECT_TRUE(link_count({nothing}, TopicPolicy::topics, Viewer{}).has_value());
}

TEST(LinkCount, ValuesInTheTextOfAnArrayAreQuoted) {
  EXPECT_EQ(array_text({}), "{}");
  EXPECT_EQ(array_text({"a", "b,c"}), R"({"a","b,c"})");
  EXPECT_EQ(array_text({R"(say "\")"}), R"({"say \"\\\""})");
}

}  // namespace
}  // namespace todoke::relay
