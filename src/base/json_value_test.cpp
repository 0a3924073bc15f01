#include "base/json_value.hpp"

#include <gtest/gtest.h>

namespace todoke {
namespace {

using Kind = JsonValue::Kind;

JsonValue good_json(std::string_view text) {
  auto value = read_json(text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().text());
  return value.value_or(JsonValue());
}

// "field: message" of what is refused.
std::string json_refusal(std::string_view text) {
  const auto value = read_json(text);
  return value ? "taken" : value.error().field + ": " + value.error().message;
}

TEST(JsonValue, KeepsNumbersAsTheyAreWritten) {
  const auto value = good_json(R"([0.10, 1e-1, -0, 123456789012345678901234567890.5E+3])");
  ASSERT_EQ(value.values.size(), 4U);
  EXPECT_EQ(value.values[0].text, "0.10");
  EXPECT_EQ(value.values[1].text, "1e-1");
  EXPECT_EQ(value.values[2].text, "-0");
  EXPECT_EQ(value.values[3].text, "123456789012345678901234567890.5E+3");
}

TEST(JsonValue, ReadsEveryKind) {
  const auto value = good_json(" {\"a\" : [true, false, null, \"x\", {}], \"b\":[] } \r\n\t");
  ASSERT_TRUE(value.is(Kind::object));
  EXPECT_EQ(value.names, (std::vector<std::string>{"a", "b"}));
  const auto& list = value.values[0].values;
  ASSERT_EQ(list.size(), 5U);
  EXPECT_TRUE(list[0].is(Kind::boolean) && list[0].flag);
  EXPECT_TRUE(list[1].is(Kind::boolean) && !list[1].flag);
  EXPECT_TRUE(list[2].is(Kind::null));
  EXPECT_EQ(list[3].text, "x");
  EXPECT_TRUE(list[4].is(Kind::object));
  EXPECT_EQ(value.member("c"), nullptr);
  EXPECT_NE(value.member("b"), nullptr);
}

TEST(JsonValue, DecodesEscapes) {
  EXPECT_EQ(good_json(R"("\"\\\/\b\f\n\r\t")").text, "\"\\/\b\f\n\r\t");
  EXPECT_EQ(good_json(R"("\u0041\u00e9\u3042\ud83d\uDE00")").text, "A\u00e9\u3042\U0001F600");
  EXPECT_EQ(good_json("\"\u3042\"").text, "\u3042");
}

TEST(JsonValue, RefusesWhatIsNoJson) {
  for (const auto* text : {"",
                           " ",
                           "{",
                           "[",
                           "\"",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{a:1}",
                           "{'a':1}",
                           "[1,]",
                           "{\"a\":1,}",
                           "[1 2]",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "-",
                           "nul",
                           "True",
                           "NaN",
                           "[1]x",
                           "{} {}",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\\u12\"",
                           "\"a\nb\"",
                           "/**/1",
                           "\xEF\xBB\xBF{}"}) {
    EXPECT_EQ(json_refusal(text), "body: is no valid JSON") << text;
  }
  EXPECT_EQ(json_refusal(std::string_view("\"a\0\"", 4)), "body: is no valid JSON");
}

TEST(JsonValue, RefusesBytesThatAreNoUtf8) {
  EXPECT_EQ(json_refusal("\"\xFF\""), "body: is no valid UTF-8");
  EXPECT_EQ(json_refusal("\"\xC0\xAF\""), "body: is no valid UTF-8");
  EXPECT_EQ(json_refusal("\"\xED\xA0\x80\""), "body: is no valid UTF-8");
}

TEST(JsonValue, NamesDuplicateMembersByTheirPath) {
  EXPECT_EQ(json_refusal(R"({"a":1,"b":2,"a":1})"), "a: is there twice");
  EXPECT_EQ(json_refusal(R"({"a":1,"\u0061":1})"), "a: is there twice");
  EXPECT_EQ(json_refusal(R"({"x":{"y":[1,{"z":1,"z":2}]}})"), "x.y[1].z: is there twice");
}

TEST(JsonValue, NamesLoneSurrogatesAndNulByTheirPath) {
  EXPECT_EQ(json_refusal(R"({"a":["\ud800"]})"), "a[0]: holds half of a surrogate pair");
  EXPECT_EQ(json_refusal(R"({"a":"\udc00\ud800"})"), "a: holds half of a surrogate pair");
  EXPECT_EQ(json_refusal(R"({"a":"\ud800\u0041"})"), "a: holds half of a surrogate pair");
  EXPECT_EQ(json_refusal(R"({"a":{"b":"x\u0000y"}})"), "a.b: holds the character U+0000");
  EXPECT_EQ(json_refusal(R"({"a\u0000":1})"), "body: holds the character U+0000");
  EXPECT_EQ(json_refusal(R"({"a":{"\udfff":1}})"), "a: holds half of a surrogate pair");
}

TEST(JsonValue, BoundsDepthAndMembers) {
  EXPECT_TRUE(read_json("[[[[[[[[1]]]]]]]]"));
  EXPECT_EQ(json_refusal("[[[[[[[[[1]]]]]]]]]"), "body: is nested too deeply");
  std::string many = "{";
  for (std::size_t i = 0; i <= kTreeMembersMax; ++i) {
    many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  }
  EXPECT_EQ(json_refusal(many + "}"), "body: has too many members");
}

TEST(JsonValue, IsWrittenAsItWasRead) {
  for (const auto* text :
       {R"({"a":[1,-2.50,1e9,"\"x\n",null,true,{"b":{}}],"c":[]})", "7", "\"あ\"", "null"}) {
    EXPECT_EQ(json_of(*read_json(text)), text);
  }
  EXPECT_EQ(json_of(*read_json(" { \"a\" : 1 } ")), R"({"a":1})");
}

TEST(JsonValue, CutsLongNamesInPathsBetweenCharacters) {
  const std::string name = std::string(63, 'a') + "\u3042\u3042";
  EXPECT_EQ(json_refusal("{\"" + name + "\":1,\"" + name + "\":1}"),
            std::string(63, 'a') + ": is there twice");
}

}  // namespace
}  // namespace todoke
