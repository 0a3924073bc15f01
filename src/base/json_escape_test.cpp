#include "base/json_escape.hpp"

#include <gtest/gtest.h>

namespace todoke {
namespace {

std::string canonical(std::string_view text) {
  std::string out;
  append_valid_json_string(out, text);
  return out;
}

TEST(Canonical, HasExactlySevenShortEscapes) {
  EXPECT_EQ(canonical("\n\"\\\r\t\b\f"), R"("\n\"\\\r\t\b\f")");
}

TEST(Canonical, WritesOtherControlCharactersAsLowerCaseLongEscapes) {
  EXPECT_EQ(canonical(std::string_view("\x00\x01\x0b\x0e\x1f", 5)), R"("\u0000\u0001\u000b\u000e\u001f")");
}

TEST(Canonical, LeavesEverythingElseAsItIs) {
  for (const auto* text : {"\x7f", "/", "\xe2\x80\xa8", "😀", "届け", "<>&'", "\xef\xbf\xbf"}) {
    EXPECT_EQ(canonical(text), "\"" + std::string(text) + "\"");
  }
}

TEST(Canonical, TellsWhetherTheTextStandsThereVerbatim) {
  std::string out;
  EXPECT_TRUE(append_valid_json_string(out, ""));
  EXPECT_TRUE(append_valid_json_string(out, "plain / 届け"));
  EXPECT_FALSE(append_valid_json_string(out, "\n"));
  EXPECT_FALSE(append_valid_json_string(out, "ends in \""));
}

TEST(EscapeForms, AreToldApart) {
  const auto all = [](EscapeForm form, std::initializer_list<const char*> raws) {
    for (const auto* raw : raws) EXPECT_EQ(escape_form(raw), form) << raw;
  };
  all(EscapeForm::canonical, {"", "plain", R"(\n\"\\\r\t\b\f)", R"(\u0000\u000b\u001f)", "\x7f"});
  all(EscapeForm::other, {R"(\/)", R"(\u000a)", R"(\u0008)", R"(\u000B)", R"(\u0041)", R"(\u007f)",
                          R"(\u0022)", R"(\ud83d\ude00)", R"(\uD83D\uDE00)", R"(\n\u2028)", R"(\uffff)"});
  all(EscapeForm::lone_surrogate, {R"(\ud83d)", R"(\ude00)", R"(\ude00\ud83d)", R"(\ud83dx)", R"(\ud83d\n)",
                                   R"(\ud83d\ud83d\ude00)", R"(\ud83d\u0041)"});
  all(EscapeForm::malformed, {R"(\)", R"(\x41)", R"(\u)", R"(\u00)", R"(\u00g0)", R"(\U0041)", R"(\a)",
                              R"(\')", R"(\ud83d\uzzzz)", R"(\ud83d\u12)"});
}

TEST(EscapeForms, WhatTheWriterWritesIsCanonical) {
  for (int c = 0; c < 128; ++c) {
    const auto quoted = canonical(std::string(1, static_cast<char>(c)) + "x");
    EXPECT_EQ(escape_form(std::string_view(quoted).substr(1, quoted.size() - 2)), EscapeForm::canonical) << c;
  }
}

}  // namespace
}  // namespace todoke
