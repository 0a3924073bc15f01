#include "index/document.hpp"

#include <gtest/gtest.h>

#include "index/search_cursor.hpp"

namespace todoke::index {
namespace {

outbox::LoggedEvent event(std::int32_t kind, std::string tags = "[]", std::string content = "text") {
  outbox::LoggedEvent out;
  out.kind = kind;
  out.tags_json = std::move(tags);
  out.content = std::move(content);
  out.effective = true;
  return out;
}

Document document(const outbox::LoggedEvent& from) {
  return document_of("id", SystemTime{}, from);
}

TEST(IndexDocument, OnlyPublicPostsInEffectBecomeOne) {
  for (const auto kind : kIndexedKinds) EXPECT_TRUE(is_public_post(event(kind)));
  for (const auto kind : {0, 3, 5, 7, 1110, 30024, 39005}) EXPECT_FALSE(is_public_post(event(kind)));
  auto changed = event(1);
  changed.non_public = true;
  EXPECT_FALSE(is_public_post(changed));
  changed = event(1);
  changed.effective = false;
  EXPECT_FALSE(is_public_post(changed));
}

TEST(IndexDocument, AScopeOtherThanPublicKeepsAPostOut) {
  EXPECT_FALSE(is_public_post(event(1, R"([["t","x"],["scope","friend_plus"]])")));
  EXPECT_TRUE(is_public_post(event(1, R"([["scope","public"]])")));
  EXPECT_TRUE(is_public_post(event(1, R"([["t","scope"]])")));
}

TEST(IndexDocument, TitleAndSummaryOfALongTextAreKept) {
  const auto made = document(
      event(30023, R"([["d","x"],["title","One\ntitle"],["title","two"],["summary","Short \u0000 text"]])"));
  EXPECT_EQ(made.title, "One title");
  EXPECT_EQ(made.summary, "Short   text");
  EXPECT_FALSE(document(event(1, R"([["title","no"]])")).title);
}

TEST(IndexDocument, ALongTitleIsCutAtACharacter) {
  std::string title;
  for (int i = 0; i < 200; ++i) title += "題";
  const auto made = document(event(30023, R"([["title","x)" + title + R"("]])"));
  EXPECT_EQ(made.title->size(), 1 + 3 * 99U);
}

TEST(IndexDocument, TagsThatAreNoListsOfStringsAreNotRead) {
  for (const auto* tags : {"", "{}", "[1,2]", R"([["title"]])", R"([["title",1]])", R"([["title","cut)"}) {
    EXPECT_FALSE(document(event(30023, tags)).title) << tags;
  }
}

TEST(IndexDocument, TokensAreInTheOrderThatPostgresKeepsWithPositionsAndWeights) {
  const auto made = document(event(30023, R"([["title","b a"]])", "a c a"));
  // Three lexemes: a at 2A, 4 and 6; b at 1A; c at 5. The title's positions end at 2, one is left free.
  const std::string expected("\0\0\0\3a\0\0\3\xC0\2\0\4\0\6b\0\0\1\xC0\1c\0\0\1\0\5", 26);
  EXPECT_EQ(made.tokens.bytes, expected);
}

TEST(IndexDocument, ALexemeHasABoundedNumberOfPositionsAndADocumentOfTokens) {
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += "a ";
  TsVectorBuilder builder;
  builder.add(text, Weight::title);
  builder.add(text, Weight::body);
  EXPECT_EQ(builder.tokens(), kTokensMax);
  EXPECT_EQ(builder.build().bytes.size(), 4 + 2 + 2 + 2 * 255U);
}

TEST(SearchCursor, IsTheSameAfterItsText) {
  const std::string id(64, 'a');
  SearchCursor cursor;
  cursor.as_of = 5;
  EXPECT_EQ(parse_cursor(to_text(cursor)), cursor);
  cursor.ceiling = Place{7, ""};
  cursor.floor = Place{-7, id};
  EXPECT_EQ(parse_cursor(to_text(cursor)), cursor);
  cursor.last = LastHit{123'456'789, id};
  EXPECT_EQ(parse_cursor(to_text(cursor)), cursor);
}

}  // namespace
}  // namespace todoke::index
