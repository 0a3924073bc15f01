#include "index/tokens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::index {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> texts(std::string_view text, std::size_t count_max = kTokensMax) {
  const auto normal = normal_text(text);
  std::vector<std::string> out;
  for (const auto& token : tokens_of(normal, count_max)) out.emplace_back(text_of(token, normal));
  return out;
}

TEST(Tokens, EnglishIsTakenByWords) {
  EXPECT_THAT(texts("The quick, brown FOX: 42!"), ElementsAre("the", "quick", "brown", "fox", "42"));
  EXPECT_THAT(texts("don't user-name foo_bar"), ElementsAre("don", "t", "user", "name", "foo", "bar"));
  EXPECT_THAT(texts("https://example.com/a?b=c"), ElementsAre("https", "example", "com", "a", "b", "c"));
}

TEST(Tokens, OtherAlphabetsAreTakenByWords) {
  EXPECT_THAT(texts("Привет, ΜΊΚΡΟΣ naïve שלום"), ElementsAre("привет", "μίκροσ", "naïve", "שלום"));
}

TEST(Tokens, JapaneseIsTakenByPairsAndTheLastCharacter) {
  EXPECT_THAT(texts("東京都"), ElementsAre("東京", "京都", "都"));
  EXPECT_THAT(texts("猫。犬"), ElementsAre("猫", "犬"));
  EXPECT_THAT(texts("コーヒーを"), ElementsAre("コー", "ーヒ", "ヒー", "ーを", "を"));
  EXPECT_THAT(texts("人々・時々"), ElementsAre("人々", "々", "時々", "々"));
}

TEST(Tokens, ChineseAndKoreanAreTakenByPairs) {
  EXPECT_THAT(texts("北京大学"), ElementsAre("北京", "京大", "大学", "学"));
  EXPECT_THAT(texts("서울에서 봄"), ElementsAre("서울", "울에", "에서", "서", "봄"));
}

TEST(Tokens, ThaiIsTakenByPairs) {
  EXPECT_THAT(texts("ไทย"), ElementsAre("ไท", "ทย", "ย"));
}

TEST(Tokens, CharactersBeyondTheBasicPlaneAreWhole) {
  EXPECT_THAT(texts("𠮷野家"), ElementsAre("𠮷野", "野家", "家"));
}

TEST(Tokens, MixedTextChangesAtTheScript) {
  EXPECT_THAT(texts("Tシャツ2枚iPhone15"), ElementsAre("t", "シャ", "ャツ", "ツ", "2", "枚", "iphone15"));
}

TEST(Tokens, EveryTokenHasTheNextPosition) {
  const auto normal = normal_text("go 東京都 now");
  const auto tokens = tokens_of(normal);
  ASSERT_EQ(tokens.size(), 5U);
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i].position, i + 1);
  EXPECT_EQ(tokens[0].kind, TokenKind::word);
  EXPECT_EQ(tokens[1].kind, TokenKind::pair);
  EXPECT_EQ(tokens[3].kind, TokenKind::last);
  EXPECT_EQ(tokens_of("猫")[0].kind, TokenKind::single);
}

TEST(Tokens, WidthAndCompatibilityFormsAreFolded) {
  EXPECT_THAT(texts("Ｎｏｓｔｒ　１２３"), ElementsAre("nostr", "123"));
  EXPECT_THAT(texts("ﾘﾚｰ"), ElementsAre("リレ", "レー", "ー"));
  EXPECT_THAT(texts("ｶﾞ ㍻ ﬁne STRASSE Straße"),
              ElementsAre("ガ", "平成", "成", "fine", "strasse", "strasse"));
  EXPECT_EQ(texts("か\u3099"), texts("が")) << "composed";
}

TEST(Tokens, EmojiAreTokensWithoutTheirDress) {
  EXPECT_THAT(texts("party🎉🎉time"), ElementsAre("party", "🎉", "🎉", "time"));
  EXPECT_THAT(texts("👍🏽"), ElementsAre("👍"));
  EXPECT_THAT(texts("❤️"), ElementsAre("❤"));
  EXPECT_THAT(texts("👩‍👩‍👧"), ElementsAre("👩", "👩", "👧"));
  EXPECT_THAT(texts("🇯🇵"), ElementsAre("🇯🇵", "🇵"));
}

TEST(Tokens, ControlAndInvisibleCharactersAreInNoToken) {
  EXPECT_THAT(texts(std::string_view("a\0b\x01\x7f", 5)), ElementsAre("a", "b"));
  EXPECT_THAT(texts("soft\u00ADhyphen zero\u200Bwidth \uFEFFbom"),
              ElementsAre("softhyphen", "zerowidth", "bom"));
  EXPECT_THAT(texts("a\u0085b\u2028c"), ElementsAre("a", "b", "c"));
}

TEST(Tokens, TextWithoutWordsHasNone) {
  EXPECT_THAT(texts(""), IsEmpty());
  EXPECT_THAT(texts(" \t\n...!?「」、。"), IsEmpty());
}

TEST(Tokens, BytesThatAreNoUtf8Separate) {
  EXPECT_THAT(texts("ab\xFF"
                    "cd\xE3\x81"),
              ElementsAre("ab", "cd"));
}

TEST(Tokens, ALongWordIsCutAtACharacter) {
  EXPECT_THAT(texts(std::string(1'000, 'x')), ElementsAre(std::string(kWordBytesMax, 'x')));
  std::string word = "x";
  for (int i = 0; i < 100; ++i) word += "é";
  const auto cut = texts(word);
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].size(), 63U) << "one byte of a letter less than the bound";
}

TEST(Tokens, TheirNumberIsBounded) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "a ";
  EXPECT_EQ(texts(text).size(), kTokensMax);
  EXPECT_EQ(texts(text, 1'000'000).size(), kTokensMax);
  EXPECT_THAT(texts("one two three", 2), ElementsAre("one", "two"));
  std::string kana;
  for (int i = 0; i < 20'000; ++i) kana += "あ";
  EXPECT_EQ(texts(kana).size(), kTokensMax);
}

}  // namespace
}  // namespace todoke::index
