#include "index/text_query.hpp"

#include <gtest/gtest.h>

namespace todoke::index {
namespace {

std::string tsquery(std::string_view text) {
  const auto query = parse_text_query(text);
  if (!query) return "refused: " + query.error().message;
  if (query->finds == TextQuery::Finds::everything) return "everything";
  if (query->finds == TextQuery::Finds::nothing) return "nothing";
  return query->tsquery;
}

TEST(TextQuery, AllWordsMustBeThereAndTheLastMayGoOn) {
  EXPECT_EQ(tsquery("Quick  Brown fox"), "('quick') & ('brown') & ('fox':*)");
  EXPECT_EQ(tsquery(" fox  "), "('fox':*)") << "white space around it is no matter";
  EXPECT_EQ(tsquery("fox!"), "('fox')");
}

TEST(TextQuery, OneLetterIsAWholeWord) {
  EXPECT_EQ(tsquery("vitamin c"), "('vitamin') & ('c')");
  EXPECT_EQ(tsquery("é"), "('é')");
}

TEST(TextQuery, WhatStandsTogetherIsFoundTogether) {
  EXPECT_EQ(tsquery("example.com"), "('example' <1> 'com':*)");
  EXPECT_EQ(tsquery("東京都庁"), "('東京' <1> '京都' <1> '都庁')");
  EXPECT_EQ(tsquery("東京 大阪"), "('東京') & ('大阪')");
  EXPECT_EQ(tsquery("東京　大阪"), "('東京') & ('大阪')") << "the ideographic space";
}

TEST(TextQuery, TheLastCharacterOfARunKeepsItsPlace) {
  EXPECT_EQ(tsquery("東京tower"), "('東京' <2> 'tower':*)");
  EXPECT_EQ(tsquery("Tシャツ"), "('t' <1> 'シャ' <1> 'ャツ')");
}

TEST(TextQuery, ASingleCharacterBeginsAPair) {
  EXPECT_EQ(tsquery("猫"), "('猫':*)");
  EXPECT_EQ(tsquery("猫 cafe."), "('猫':*) & ('cafe')");
}

TEST(TextQuery, TextWithoutTokensFindsNothingAndNoTextEverything) {
  EXPECT_EQ(tsquery(""), "everything");
  EXPECT_EQ(tsquery("  \n"), "everything");
  EXPECT_EQ(tsquery("!?"), "nothing");
  EXPECT_EQ(tsquery("' & | ! :* ( )"), "nothing");
}

TEST(TextQuery, ExtensionsOfNip50ArePassedOver) {
  EXPECT_EQ(tsquery("best language:en nostr include:spam"), "('best') & ('nostr':*)");
  EXPECT_EQ(tsquery("language:en"), "everything");
  EXPECT_EQ(tsquery("sort:top fox filter_by:x"), "('fox':*)") << "those that no NIP names, too";
  EXPECT_EQ(tsquery("fox note: :this"), "('fox') & ('note') & ('this':*)");
}

TEST(TextQuery, AddressesAndTimesAreNoExtensions) {
  EXPECT_EQ(tsquery("https://example.com"), "('https' <1> 'example' <1> 'com':*)");
  EXPECT_EQ(tsquery("nostr:npub1xy"), "('nostr' <1> 'npub1xy':*)");
  EXPECT_EQ(tsquery("at 12:30"), "('at') & ('12' <1> '30':*)");
}

TEST(TextQuery, ItsSizeIsBounded) {
  EXPECT_EQ(tsquery(std::string(kQueryBytesMax, 'x')), "('" + std::string(64, 'x') + "')");
  EXPECT_EQ(tsquery(std::string(kQueryBytesMax + 1, 'x')), "refused: search has at most 1024 bytes");
  std::string words;
  for (int i = 0; i < 65; ++i) words += "a ";
  EXPECT_EQ(tsquery(words), "refused: search has at most 64 words or characters");
}

}  // namespace
}  // namespace todoke::index
