#include "app/event_draft.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/commands.hpp"
#include "app/keys.hpp"

namespace todoke::app {
namespace {

using testing::ElementsAre;

TEST(EventDraftTest, ATagIsAPairOrAJsonArray) {
  EXPECT_THAT(parse_tag("t=kukuri:global"), ElementsAre("t", "kukuri:global"));
  EXPECT_THAT(parse_tag("d="), ElementsAre("d", ""));
  EXPECT_THAT(parse_tag("r=a=b"), ElementsAre("r", "a=b"));
  EXPECT_THAT(parse_tag(R"(["e","x","wss://r"])"), ElementsAre("e", "x", "wss://r"));
  for (const auto* bad : {"", "t", "=x", "[]", "[1]", R"(["e")", R"(["e",["x"]])"})
    EXPECT_THROW(parse_tag(bad), UsageError) << bad;
}

TEST(EventDraftTest, TheOptionsMakeAnEventAndTagsKeepTheirOrder) {
  const auto& command = commands().at("publish");
  const auto given = [&](const std::vector<std::string>& words) {
    return parse_arguments(command, schema(), words);
  };
  const auto draft = draft_from(given({"--kind", "1111", "--content", "hello", "--tag", "a=1", "--tag", "b=2",
                                       "--created-at", "1700000000"}));
  EXPECT_EQ(draft.kind, 1111);
  EXPECT_EQ(draft.content, "hello");
  EXPECT_EQ(draft.created_at, 1'700'000'000);
  EXPECT_THAT(draft.tags, ElementsAre(ElementsAre("a", "1"), ElementsAre("b", "2")));
  EXPECT_EQ(draft_from(given({})).kind, 1);
  EXPECT_THROW(draft_from(given({"--kind", "65536"})), UsageError);
  EXPECT_THROW(draft_from(given({"--kind", "1x"})), UsageError);
}

}  // namespace
}  // namespace todoke::app
