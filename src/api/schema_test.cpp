#include "api/schema.hpp"

#include <gtest/gtest.h>

namespace todoke::api {
namespace {

std::string offence(const Schema& schema, std::string_view json) {
  const auto value = read_json(json);
  if (!value) return "no JSON: " + value.error().text();
  const auto found = offence_in(schema, *value, "");
  return found ? found->text() : "";
}

std::string written(const Schema& schema) {
  JsonWriter json;
  write_schema(json, schema);
  return json.text();
}

TEST(SchemaTest, ATextHasBoundsInCharacters) {
  auto schema = object_of({{"name", text_up_to(3, "A name.")}});
  schema.members.front().schema.least = 1;
  EXPECT_EQ(offence(schema, R"({"name":"日本語"})"), "");
  EXPECT_EQ(offence(schema, R"({"name":"四つの字"})"), "name must have at most 3 characters");
  EXPECT_EQ(offence(schema, R"({"name":""})"), "name must have 1 or more characters");
  EXPECT_EQ(offence(schema, R"({"name":7})"), "name must be a text");
  EXPECT_EQ(offence(schema, R"({"name":null})"), "name must be a text");
  EXPECT_EQ(written(schema.members.front().schema),
            R"({"type":"string","description":"A name.","minLength":1,"maxLength":3})");
}

TEST(SchemaTest, AnObjectHasItsMembersAndNoOthers) {
  const auto schema = object_of({{"a", integer_from(1, 9, "")}, {"b", boolean(""), Needed::optional}});
  EXPECT_EQ(offence(schema, R"({"a":1})"), "");
  EXPECT_EQ(offence(schema, R"({"a":9,"b":false})"), "");
  EXPECT_EQ(offence(schema, R"({"b":true})"), "a is required");
  EXPECT_EQ(offence(schema, R"({"a":1,"c":1})"), "c is not known");
  EXPECT_EQ(offence(schema, R"({"a":0})"), "a must be a whole number from 1 to 9");
  EXPECT_EQ(offence(schema, R"({"a":1.5})"), "a must be a whole number from 1 to 9");
  EXPECT_EQ(offence(schema, R"({"a":99999999999999999999})"), "a must be a whole number from 1 to 9");
  EXPECT_EQ(offence(schema, R"({"a":1,"b":"true"})"), "b must be true or false");
  EXPECT_EQ(offence(schema, "[]"), "body must be an object");
  EXPECT_EQ(written(schema),
            R"({"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":9},)"
            R"("b":{"type":"boolean"}},"required":["a"],"additionalProperties":false})");
}

TEST(SchemaTest, OneOfSeveralMembersIsThere) {
  const auto schema = with_one_of(
      object_of({{"id", text_up_to(9, ""), Needed::optional}, {"name", text_up_to(9, ""), Needed::optional}}),
      {"id", "name"});
  EXPECT_EQ(offence(schema, R"({"id":"a"})"), "");
  EXPECT_EQ(offence(schema, R"({"name":"a"})"), "");
  EXPECT_EQ(offence(schema, "{}"), "body must have one of id, name");
  EXPECT_EQ(offence(schema, R"({"id":"a","name":"b"})"), "body must have one of id, name");
}

TEST(SchemaTest, ASetHasNoEntryTwice) {
  const auto schema = object_of({{"services", set_of(choice_of({"index", "trust"}, ""), 2, "")}});
  EXPECT_EQ(offence(schema, R"({"services":["trust","index"]})"), "");
  EXPECT_EQ(offence(schema, R"({"services":["index","index"]})"), "services has an entry twice");
  EXPECT_EQ(offence(schema, R"({"services":["index","other"]})"), "services[1] must be one of index, trust");
  EXPECT_EQ(offence(schema, R"({"services":["index","trust","index"]})"),
            "services must have at most 2 entries");
  EXPECT_EQ(offence(schema, R"({"services":"index"})"), "services must be a list");
}

TEST(SchemaTest, FormatsTakeWhatTheirPatternsSay) {
  const auto of = [](const Format& format, std::string_view text) { return format.matches(text); };
  EXPECT_TRUE(of(kHexKey, std::string(64, 'a')));
  EXPECT_FALSE(of(kHexKey, std::string(64, 'A')));
  EXPECT_FALSE(of(kHexKey, std::string(63, 'a')));
  EXPECT_TRUE(of(kUuid, "01234567-89ab-cdef-0123-456789abcdef"));
  EXPECT_FALSE(of(kUuid, "01234567-89ab-cdef-0123-456789abcdeg"));
  EXPECT_FALSE(of(kUuid, "0123456789abcdef0123456789abcdef0123"));
  EXPECT_TRUE(of(kTimestamp, "2026-01-31T12:00:00.123456Z"));
  EXPECT_FALSE(of(kTimestamp, "2026-01-31T12:00:00+09:00"));
  EXPECT_TRUE(of(kCursor, "aZ09-_."));
  EXPECT_FALSE(of(kCursor, ""));
  EXPECT_FALSE(of(kCursor, "a b"));
}

TEST(SchemaTest, NullIsTakenWhereTheSchemaSaysSo) {
  const auto schema = object_of({{"at", nullable(formatted(kTimestamp, ""))}});
  EXPECT_EQ(offence(schema, R"({"at":null})"), "");
  EXPECT_NE(written(schema).find(R"("type":["string","null"])"), std::string::npos);
  EXPECT_EQ(written(nullable(named("Thing", object_of({})))),
            R"({"anyOf":[{"$ref":"#/components/schemas/Thing"},{"type":"null"}]})");
}

TEST(SchemaTest, OneOfSeveralKindsMayBe) {
  const auto schema = either_of({text_up_to(9, ""), any_object("")}, "");
  EXPECT_EQ(offence(schema, R"("a")"), "");
  const auto inside = object_of({{"event", schema}});
  EXPECT_EQ(offence(inside, R"({"event":"a"})"), "");
  EXPECT_EQ(offence(inside, R"({"event":{"kind":1}})"), "");
  EXPECT_EQ(offence(inside, R"({"event":7})"), "event must be an object");
}

TEST(SchemaTest, ATextOfAQueryIsWhatItsSchemaSays) {
  const auto limit = integer_from(1, 100, "");
  EXPECT_EQ(value_of_text(limit, "7", "limit")->text, "7");
  EXPECT_EQ(value_of_text(limit, "x", "limit").error().text(), "limit must be a whole number from 1 to 100");
  EXPECT_TRUE(value_of_text(boolean(""), "true", "flag")->flag);
  EXPECT_EQ(value_of_text(boolean(""), "1", "flag").error().text(), "flag must be true or false");
  EXPECT_EQ(value_of_text(formatted(kHexKey, ""), "z", "subject").error().text(),
            "subject must be 64 hex digits in lower case");
}

TEST(SchemaTest, ComponentsAreCollectedOnceAndTheInnerOnesFirst) {
  const auto inner = named("Inner", object_of({{"a", boolean("")}}));
  const auto outer = named("Outer", object_of({{"x", inner}, {"y", list_of(inner, 3, "")}}));
  std::vector<const Schema*> components;
  collect_components(outer, components);
  ASSERT_EQ(components.size(), 2U);
  EXPECT_EQ(components[0]->name, "Inner");
  EXPECT_EQ(components[1]->name, "Outer");
  EXPECT_EQ(written(outer), R"({"$ref":"#/components/schemas/Outer"})");
}

}  // namespace
}  // namespace todoke::api
