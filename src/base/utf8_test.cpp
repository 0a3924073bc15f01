#include "base/utf8.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace todoke {
namespace {

std::string encoded(unsigned code_point, int bytes) {
  if (bytes == 1) return {static_cast<char>(code_point)};
  std::string text(static_cast<std::size_t>(bytes), '\0');
  for (std::size_t i = text.size() - 1; i > 0; --i, code_point >>= 6)
    text[i] = static_cast<char>(0x80 | (code_point & 0x3F));
  text[0] = static_cast<char>((0xF00 >> bytes & 0xFF) | code_point);
  return text;
}

int shortest(unsigned code_point) {
  if (code_point < 0x80) return 1;
  if (code_point < 0x800) return 2;
  return code_point < 0x10000 ? 3 : 4;
}

TEST(Utf8Check, AcceptsEveryCodePointInItsShortestFormAlone) {
  for (unsigned code_point = 0; code_point < 0x200000; ++code_point) {
    const bool allowed = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    ASSERT_EQ(is_utf8(encoded(code_point, shortest(code_point))), allowed) << code_point;
    for (int bytes = shortest(code_point) + 1; bytes <= 4; ++bytes) {
      ASSERT_FALSE(is_utf8(encoded(code_point, bytes))) << "overlong: " << code_point;
    }
  }
}

TEST(Utf8, CharactersAreReadOneByOneAndWhatIsNoneByTheByte) {
  const std::string_view text = "a\xc3\xa9\xed\xa0\x80\xf0\x9f\x98\x80\xe5\xb1";
  const std::vector<std::int32_t> expected{'a', 0xE9, -1, -1, -1, 0x1F600, -1, -1};
  std::vector<std::int32_t> characters;
  for (std::size_t at = 0; at < text.size();) characters.push_back(next_character(text, at));
  EXPECT_EQ(characters, expected);
  EXPECT_EQ(character_length("\xf0\x9f\x98\x80z"), 4U);
  EXPECT_EQ(character_length(""), 0U);
}

TEST(Utf8, EveryCharacterIsReadAsItself) {
  for (unsigned code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::size_t at = 0;
    ASSERT_EQ(next_character(encoded(code_point, shortest(code_point)), at),
              static_cast<std::int32_t>(code_point));
  }
}

TEST(Utf8, TextIsCountedAndCutBetweenCharacters) {
  EXPECT_EQ(count_characters("a届け"), 3U);
  EXPECT_EQ(cut_between_characters("a届け", 7), "a届け");
  EXPECT_EQ(cut_between_characters("a届け", 6), "a届");
  EXPECT_EQ(cut_between_characters("届け", 2), "");
}

TEST(Utf8Check, TextMayBeCutAnywhere) {
  const std::string text =
      "plain text that is longer than eight bytes, \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and more of it";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Utf8Check check;
    EXPECT_TRUE(check.feed(std::string_view(text).substr(0, cut)));
    EXPECT_TRUE(check.feed(std::string_view(text).substr(cut)));
    EXPECT_TRUE(check.complete());
  }
}

TEST(Utf8Check, IsNotCompleteInsideACodePointAndStaysInvalid) {
  Utf8Check check;
  EXPECT_TRUE(check.feed("12345678\xf0\x9f"));
  EXPECT_FALSE(check.complete());
  EXPECT_FALSE(check.feed("12345678"));
  EXPECT_FALSE(check.feed("good"));
  EXPECT_FALSE(check.complete());
  check.reset();
  EXPECT_TRUE(check.complete());
}

}  // namespace
}  // namespace todoke
