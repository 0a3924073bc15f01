#include "base/json_read.hpp"

#include <gtest/gtest.h>

namespace todoke {
namespace {

constexpr unsigned kDepth = 4;

TEST(CheckJson, TakesEveryJsonText) {
  for (const auto* text : {"1",
                           "-0",
                           "0.5",
                           "-1.5e-3",
                           "1E+5",
                           "1e999",
                           "123456789012345678901234567890",
                           "true",
                           "false",
                           "null",
                           R"("")",
                           R"( "a" )",
                           "[]",
                           "{}",
                           " [ ] ",
                           "[[],{}]",
                           R"({"a":{"b":[1,"c",null]}})",
                           R"({"\u0061\n":1})",
                           R"(["\ud800"])",
                           R"(["\u00e9\/"])",
                           "[\"\x7f届け\"]",
                           "[1,\n2\t,\r3 ]",
                           "[[[[]]]]",
                           R"({"a":1,"a":2})"}) {
    EXPECT_EQ(check_json(text, kDepth), JsonCheck::good) << text;
  }
}

TEST(CheckJson, RefusesEverythingElse) {
  for (const auto* text : {R"("a","b")",
                           R"("a" "b")",
                           "",
                           " ",
                           "x",
                           "tru",
                           "nulll",
                           "01",
                           "-",
                           "+1",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "0x1",
                           "1 2",
                           "NaN",
                           R"(")",
                           R"("a)",
                           "'a'",
                           "[",
                           "]",
                           "[1",
                           "1]",
                           "[1,]",
                           "[,1]",
                           "[1,,2]",
                           "[1 2]",
                           "[1:2]",
                           "{",
                           "}",
                           R"({"a"})",
                           R"({"a":})",
                           R"({"a":1,})",
                           "{a:1}",
                           "{1:2}",
                           R"({"a" 1})",
                           R"({"a":1 "b":2})",
                           R"({"a":1])",
                           "[1}",
                           "[]]",
                           "[[]",
                           "{}}",
                           "[] x",
                           "{}[]",
                           R"(["\x"])",
                           R"(["\u12"])",
                           R"(["\u12g4"])",
                           R"({"\x":1})",
                           "[\"\n\"]",
                           "[\"\xff\"]",
                           "[\"\xed\xa0\x80\"]",
                           R"(["a":1])",
                           R"(["a":{"b":1}])",
                           R"({"a":"b":1})",
                           R"({"a":"b":[]}})",
                           R"(["a" "b"])",
                           R"({"a":"b""c":1})",
                           R"(["a"b])",
                           R"([1,"a":2}])",
                           R"(["a\"])"}) {
    EXPECT_EQ(check_json(text, kDepth), JsonCheck::not_json) << text;
  }
}

TEST(CheckJson, BoundsTheDepth) {
  EXPECT_EQ(check_json("[[[[[]]]]]", kDepth), JsonCheck::too_deep);
  EXPECT_EQ(check_json(R"({"a":{"a":{"a":{"a":{}}}}})", kDepth), JsonCheck::too_deep);
  const std::string deep(1'000'000, '[');
  EXPECT_NE(check_json(deep + std::string(deep.size(), ']'), kDepth), JsonCheck::good);
}

}  // namespace
}  // namespace todoke
