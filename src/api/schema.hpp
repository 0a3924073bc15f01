// What a JSON value must be, as data. A schema checks what comes in and writes itself down as JSON Schema
// (2020-12) for the OpenAPI document, so that the two never differ.
//
// Lengths of texts are in characters (code points), as JSON Schema counts. Objects have the members that they
// name and no others, unless they are `any_object`. Null is refused where a schema does not say nullable.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.hpp"
#include "base/json_writer.hpp"

namespace todoke::api {

// A form of texts that JSON Schema says by a pattern. Pattern and function say the same.
struct Format {
  std::string_view pattern;
  bool (*matches)(std::string_view);
  std::string_view must_be;  // for whoever sent something else: "64 hex digits in lower case"
};

enum class SchemaType : std::uint8_t { text, integer, number, boolean, list, object, any_object, either };

struct SchemaMember;

struct Schema {
  SchemaType type = SchemaType::text;
  std::string_view meaning = {};
  std::int64_t least = 0;  // characters of a text, value of an integer, entries of a list
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const Format* format = nullptr;              // of a text
  std::vector<std::string_view> choices = {};  // of a text: nothing else
  std::vector<Schema> parts;                   // of a list: what its entries are; of either: one of these
  bool is_set = false;                         // of a list: no entry comes twice
  std::vector<SchemaMember> members;
  std::vector<std::string_view> one_of = {};  // of an object: exactly one of these optional members is there
  bool is_nullable = false;
  std::string_view name = {};  // a component of the document, described once
};

enum class Needed : std::uint8_t { always, optional };

struct SchemaMember {
  std::string_view name;
  Schema schema;
  Needed needed = Needed::always;
};

// Short forms.
Schema text_up_to(std::int64_t most, std::string_view meaning);
Schema formatted(const Format& format, std::string_view meaning);
Schema choice_of(std::vector<std::string_view> choices, std::string_view meaning);
Schema integer_from(std::int64_t least, std::int64_t most, std::string_view meaning);
Schema number(std::string_view meaning);
Schema boolean(std::string_view meaning);
Schema list_of(Schema entry, std::int64_t most, std::string_view meaning);
Schema set_of(Schema entry, std::int64_t most, std::string_view meaning);
Schema object_of(std::vector<SchemaMember> members, std::string_view meaning = {});
Schema any_object(std::string_view meaning);
Schema either_of(std::vector<Schema> parts, std::string_view meaning);
Schema nullable(Schema schema);
Schema named(std::string_view name, Schema schema);
// Where members stand beside each other of which exactly one is there.
Schema with_one_of(Schema object, std::vector<std::string_view> members);

// Formats that every API has use for.
extern const Format kHexKey;     // a public key, an event id
extern const Format kUuid;       // in lower case
extern const Format kTimestamp;  // RFC 3339, UTC
extern const Format kCursor;     // an opaque place in a list

// The first thing that is wrong with the value, named by its path below `path`; nothing where it is right.
std::optional<BadField> offence_in(const Schema& schema, const JsonValue& value, const std::string& path);

// The value that a text of a path or a query stands for, such as the number 7. Refused: what is wrong.
Checked<JsonValue> value_of_text(const Schema& schema, std::string_view text, std::string_view field);

// Writes the schema; those with a name as a reference to their component.
void write_schema(JsonWriter& json, const Schema& schema);
// The schemas with a name that it holds, itself included, the inner ones first; each with what it is.
void collect_components(const Schema& schema, std::vector<const Schema*>& components);
// As it stands among the components.
void write_component(JsonWriter& json, const Schema& schema);

}  // namespace todoke::api
