#include "api/schema.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace todoke::api {
namespace {

using Kind = JsonValue::Kind;

constexpr std::size_t kKeyDigits = 64;
constexpr std::size_t kUuidSize = 36;
constexpr std::size_t kCursorMax = 512;
// As texts may be in a query string.
constexpr std::string_view kTrue = "true";
constexpr std::string_view kFalse = "false";

bool is_hex_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_hex_key(std::string_view text) {
  return text.size() == kKeyDigits && std::all_of(text.begin(), text.end(), is_hex_digit);
}

bool is_uuid(std::string_view text) {
  if (text.size() != kUuidSize) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? text[i] != '-' : !is_hex_digit(text[i])) return false;
  }
  return true;
}

bool is_timestamp(std::string_view text) {
  return text.ends_with('Z') && parse_timestamp(text).has_value();
}

bool is_cursor(std::string_view text) {
  return !text.empty() && text.size() <= kCursorMax && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

// Of UTF-8 that is known to be right.
std::int64_t characters_in(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) {
    constexpr unsigned kContinuationMask = 0xC0;
    constexpr unsigned kContinuation = 0x80;
    return (static_cast<unsigned char>(c) & kContinuationMask) != kContinuation;
  });
}

Schema schema_of(SchemaType type, std::string_view meaning) {
  Schema schema;
  schema.type = type;
  schema.meaning = meaning;
  return schema;
}

std::string_view type_name(SchemaType type) {
  switch (type) {
    case SchemaType::text:
      return "string";
    case SchemaType::integer:
      return "integer";
    case SchemaType::number:
      return "number";
    case SchemaType::boolean:
      return "boolean";
    case SchemaType::list:
      return "array";
    case SchemaType::object:
    case SchemaType::any_object:
    case SchemaType::either:
      break;
  }
  return "object";
}

std::string_view wanted_kind(SchemaType type) {
  switch (type) {
    case SchemaType::text:
      return "a text";
    case SchemaType::integer:
      return "a whole number";
    case SchemaType::number:
      return "a number";
    case SchemaType::boolean:
      return "true or false";
    case SchemaType::list:
      return "a list";
    case SchemaType::object:
    case SchemaType::any_object:
    case SchemaType::either:
      break;
  }
  return "an object";
}

bool is_of_type(SchemaType type, Kind kind) {
  switch (type) {
    case SchemaType::text:
      return kind == Kind::string;
    case SchemaType::integer:
    case SchemaType::number:
      return kind == Kind::number;
    case SchemaType::boolean:
      return kind == Kind::boolean;
    case SchemaType::list:
      return kind == Kind::array;
    case SchemaType::object:
    case SchemaType::any_object:
    case SchemaType::either:
      break;
  }
  return kind == Kind::object;
}

using Offence = std::optional<BadField>;

Offence offends(const std::string& path, std::string message) {
  return BadField{path.empty() ? std::string(kWholeDocument) : path, std::move(message)};
}

Offence offence_in_text(const Schema& schema, const std::string& text, const std::string& path) {
  if (!schema.choices.empty()) {
    const bool is_one = std::find(schema.choices.begin(), schema.choices.end(), text) != schema.choices.end();
    return is_one ? Offence()
                  : offends(path, fmt::format("must be one of {}", fmt::join(schema.choices, ", ")));
  }
  if (schema.format != nullptr) {
    return schema.format->matches(text) ? Offence()
                                        : offends(path, fmt::format("must be {}", schema.format->must_be));
  }
  const auto size = characters_in(text);
  if (size < schema.least) return offends(path, fmt::format("must have {} or more characters", schema.least));
  if (size > schema.most) return offends(path, fmt::format("must have at most {} characters", schema.most));
  return {};
}

Offence offence_in_integer(const Schema& schema, const std::string& text, const std::string& path) {
  const auto number = parse_number<std::int64_t>(text);
  if (number && *number >= schema.least && *number <= schema.most) return {};
  return offends(path, fmt::format("must be a whole number from {} to {}", schema.least, schema.most));
}

bool is_same(const JsonValue& a, const JsonValue& b) {
  return a.kind == b.kind && a.flag == b.flag && a.text == b.text && a.names == b.names &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), is_same);
}

bool has_twice(const std::vector<JsonValue>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (is_same(values[i], values[j])) return true;
    }
  }
  return false;
}

Offence offence_in_list(const Schema& schema, const JsonValue& list, const std::string& path) {
  const auto size = static_cast<std::int64_t>(list.values.size());
  if (size < schema.least) return offends(path, fmt::format("must have {} or more entries", schema.least));
  if (size > schema.most) return offends(path, fmt::format("must have at most {} entries", schema.most));
  for (std::size_t i = 0; i < list.values.size(); ++i) {
    if (auto offence = offence_in(schema.parts.front(), list.values[i], path_of(path, i))) return offence;
  }
  if (schema.is_set && has_twice(list.values)) return offends(path, "has an entry twice");
  return {};
}

const JsonValue* value_named(const JsonValue& object, std::string_view name) {
  const auto found = std::find(object.names.begin(), object.names.end(), name);
  if (found == object.names.end()) return nullptr;
  return &object.values[static_cast<std::size_t>(found - object.names.begin())];
}

Offence offence_in_choice(const Schema& schema, const JsonValue& object, const std::string& path) {
  const auto there = std::count_if(schema.one_of.begin(), schema.one_of.end(), [&](std::string_view name) {
    return value_named(object, name) != nullptr;
  });
  if (schema.one_of.empty() || there == 1) return {};
  return offends(path, fmt::format("must have one of {}", fmt::join(schema.one_of, ", ")));
}

Offence offence_in_object(const Schema& schema, const JsonValue& object, const std::string& path) {
  for (const auto& name : object.names) {
    const bool is_known = std::any_of(schema.members.begin(), schema.members.end(),
                                      [&](const SchemaMember& member) { return member.name == name; });
    if (!is_known) return offends(path_of(path, name), "is not known");
  }
  for (const auto& member : schema.members) {
    const auto* value = value_named(object, member.name);
    if (value == nullptr) {
      if (member.needed == Needed::always) return offends(path_of(path, member.name), "is required");
      continue;
    }
    if (auto offence = offence_in(member.schema, *value, path_of(path, member.name))) return offence;
  }
  return offence_in_choice(schema, object, path);
}

void write_bounds(JsonWriter& json, const Schema& schema, std::string_view least, std::string_view most) {
  if (schema.least != 0 || schema.type == SchemaType::integer) json.member(least, schema.least);
  if (schema.most != Schema().most) json.member(most, schema.most);
}

void write_text(JsonWriter& json, const Schema& schema) {
  if (schema.format != nullptr) json.member("pattern", schema.format->pattern);
  if (schema.choices.empty()) return write_bounds(json, schema, "minLength", "maxLength");
  json.key("enum").begin_array();
  for (const auto choice : schema.choices) json.value(choice);
  if (schema.is_nullable) json.null();
  json.end_array();
}

void write_list(JsonWriter& json, const Schema& schema) {
  write_bounds(json, schema, "minItems", "maxItems");
  if (schema.is_set) json.member("uniqueItems", true);
  json.key("items");
  write_schema(json, schema.parts.front());
}

void write_object(JsonWriter& json, const Schema& schema) {
  json.key("properties").begin_object();
  for (const auto& member : schema.members) {
    json.key(member.name);
    write_schema(json, member.schema);
  }
  json.end_object();
  json.key("required").begin_array();
  for (const auto& member : schema.members) {
    if (member.needed == Needed::always) json.value(member.name);
  }
  json.end_array().member("additionalProperties", false);
  if (schema.one_of.empty()) return;
  json.key("oneOf").begin_array();
  for (const auto name : schema.one_of) {
    json.begin_object().key("required").begin_array().value(name).end_array().end_object();
  }
  json.end_array();
}

void write_either(JsonWriter& json, const Schema& schema) {
  json.key("anyOf").begin_array();
  for (const auto& part : schema.parts) write_schema(json, part);
  json.end_array();
}

void write_type(JsonWriter& json, const Schema& schema) {
  json.key("type");
  if (schema.is_nullable) {
    json.begin_array().value(type_name(schema.type)).value("null").end_array();
  } else {
    json.value(type_name(schema.type));
  }
}

// Everything but the braces.
void write_content(JsonWriter& json, const Schema& schema) {
  if (schema.type != SchemaType::either) write_type(json, schema);
  if (!schema.meaning.empty()) json.member("description", schema.meaning);
  switch (schema.type) {
    case SchemaType::text:
      return write_text(json, schema);
    case SchemaType::integer:
      return write_bounds(json, schema, "minimum", "maximum");
    case SchemaType::list:
      return write_list(json, schema);
    case SchemaType::object:
      return write_object(json, schema);
    case SchemaType::either:
      return write_either(json, schema);
    case SchemaType::number:
    case SchemaType::boolean:
    case SchemaType::any_object:
      return;
  }
}

}  // namespace

const Format kHexKey{"^[0-9a-f]{64}$", is_hex_key, "64 hex digits in lower case"};
const Format kUuid{"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", is_uuid,
                   "a UUID in lower case"};
const Format kTimestamp{"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?Z$", is_timestamp,
                        "a time such as 2026-01-31T12:00:00Z"};
const Format kCursor{"^[A-Za-z0-9._-]{1,512}$", is_cursor, "a cursor that a list has given"};

Schema text_up_to(std::int64_t most, std::string_view meaning) {
  auto schema = schema_of(SchemaType::text, meaning);
  schema.most = most;
  return schema;
}

Schema formatted(const Format& format, std::string_view meaning) {
  auto schema = schema_of(SchemaType::text, meaning);
  schema.format = &format;
  return schema;
}

Schema choice_of(std::vector<std::string_view> choices, std::string_view meaning) {
  auto schema = schema_of(SchemaType::text, meaning);
  schema.choices = std::move(choices);
  return schema;
}

Schema integer_from(std::int64_t least, std::int64_t most, std::string_view meaning) {
  auto schema = schema_of(SchemaType::integer, meaning);
  schema.least = least;
  schema.most = most;
  return schema;
}

Schema number(std::string_view meaning) {
  return schema_of(SchemaType::number, meaning);
}

Schema boolean(std::string_view meaning) {
  return schema_of(SchemaType::boolean, meaning);
}

Schema list_of(Schema entry, std::int64_t most, std::string_view meaning) {
  auto schema = schema_of(SchemaType::list, meaning);
  schema.most = most;
  schema.parts.push_back(std::move(entry));
  return schema;
}

Schema set_of(Schema entry, std::int64_t most, std::string_view meaning) {
  auto schema = list_of(std::move(entry), most, meaning);
  schema.is_set = true;
  return schema;
}

Schema object_of(std::vector<SchemaMember> members, std::string_view meaning) {
  auto schema = schema_of(SchemaType::object, meaning);
  schema.members = std::move(members);
  return schema;
}

Schema any_object(std::string_view meaning) {
  return schema_of(SchemaType::any_object, meaning);
}

Schema either_of(std::vector<Schema> parts, std::string_view meaning) {
  auto schema = schema_of(SchemaType::either, meaning);
  schema.parts = std::move(parts);
  return schema;
}

Schema nullable(Schema schema) {
  schema.is_nullable = true;
  return schema;
}

Schema named(std::string_view name, Schema schema) {
  schema.name = name;
  return schema;
}

Schema with_one_of(Schema object, std::vector<std::string_view> members) {
  object.one_of = std::move(members);
  return object;
}

std::optional<BadField> offence_in(const Schema& schema, const JsonValue& value, const std::string& path) {
  if (value.is(Kind::null) && schema.is_nullable) return {};
  if (schema.type == SchemaType::either) {
    Offence last;
    for (const auto& part : schema.parts) {
      last = offence_in(part, value, path);
      if (!last) return {};
    }
    return last;
  }
  if (!is_of_type(schema.type, value.kind))
    return offends(path, fmt::format("must be {}", wanted_kind(schema.type)));
  switch (schema.type) {
    case SchemaType::text:
      return offence_in_text(schema, value.text, path);
    case SchemaType::integer:
      return offence_in_integer(schema, value.text, path);
    case SchemaType::list:
      return offence_in_list(schema, value, path);
    case SchemaType::object:
      return offence_in_object(schema, value, path);
    case SchemaType::number:
    case SchemaType::boolean:
    case SchemaType::any_object:
    case SchemaType::either:
      break;
  }
  return {};
}

Checked<JsonValue> value_of_text(const Schema& schema, std::string_view text, std::string_view field) {
  JsonValue value;
  value.text = text;
  value.kind = Kind::string;
  if (schema.type == SchemaType::integer) value.kind = Kind::number;
  if (schema.type == SchemaType::boolean) {
    if (text != kTrue && text != kFalse) return bad_field(field, "must be true or false");
    value.kind = Kind::boolean;
    value.flag = text == kTrue;
  }
  if (auto offence = offence_in(schema, value, std::string(field)))
    return tl::unexpected(std::move(*offence));
  return value;
}

void write_schema(JsonWriter& json, const Schema& schema) {
  if (schema.name.empty()) {
    json.begin_object();
    write_content(json, schema);
    json.end_object();
    return;
  }
  const auto reference = fmt::format("#/components/schemas/{}", schema.name);
  if (!schema.is_nullable) {
    json.begin_object().member("$ref", reference).end_object();
    return;
  }
  json.begin_object().key("anyOf").begin_array();
  json.begin_object().member("$ref", reference).end_object();
  json.begin_object().member("type", "null").end_object();
  json.end_array().end_object();
}

void collect_components(const Schema& schema, std::vector<const Schema*>& components) {
  for (const auto& part : schema.parts) collect_components(part, components);
  for (const auto& member : schema.members) collect_components(member.schema, components);
  if (schema.name.empty()) return;
  const bool is_known = std::any_of(components.begin(), components.end(),
                                    [&](const Schema* known) { return known->name == schema.name; });
  if (!is_known) components.push_back(&schema);
}

void write_component(JsonWriter& json, const Schema& schema) {
  auto bare = schema;
  bare.name = {};
  bare.is_nullable = false;
  write_schema(json, bare);
}

}  // namespace todoke::api
