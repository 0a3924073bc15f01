#include "base/base64.hpp"

#include <gtest/gtest.h>

#include "base/bytes.hpp"

namespace todoke {
namespace {

std::string encoded(std::string_view text, Base64 alphabet = Base64::standard) {
  return to_base64(as_bytes(text), alphabet);
}

TEST(Base64Test, WritesTheExamplesOfTheRfc) {
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foob"), "Zm9vYg==");
  EXPECT_EQ(encoded("fooba"), "Zm9vYmE=");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
}

TEST(Base64Test, TheAlphabetForUrlsHasNoPaddingAndNoSignsOfItsOwn) {
  EXPECT_EQ(encoded("\xfb\xff", Base64::standard), "+/8=");
  EXPECT_EQ(encoded("\xfb\xff", Base64::url), "-_8");
}

TEST(Base64Test, ReadsWhatItWritesInBothAlphabets) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    for (const auto alphabet : {Base64::standard, Base64::url}) {
      EXPECT_EQ(from_base64(encoded(bytes, alphabet), alphabet), bytes);
    }
    bytes += static_cast<char>(i);
  }
}

TEST(Base64Test, PaddingMayBeMissing) {
  EXPECT_EQ(from_base64("Zg"), "f");
  EXPECT_EQ(from_base64("Zm8"), "fo");
  EXPECT_EQ(from_base64("-_8=", Base64::url), "\xfb\xff");
}

TEST(Base64Test, RefusesWhatNoBytesGive) {
  for (const auto* text :
       {"Z", "Zg=", "Zg===", "Zm9v=", "Zm9v====", "=", "Zm 9v", "Zm9v\n", "Zh", "Zm9", "-_8"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
  EXPECT_EQ(from_base64("+/8", Base64::url), std::nullopt);
}

}  // namespace
}  // namespace todoke
