// JSON text as a tree, read strictly: numbers stay the text that they were (no double in between), duplicate
// members, lone surrogates, U+0000 and what is no UTF-8 are refused. What is refused is named by its path:
// `qty`, `limits.most`, `tags[3]`, or `body` for the text as a whole.
//
// For documents of a few kilobytes; their callers bound the size. Time is linear in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

namespace todoke {

// The name of the document itself.
inline constexpr std::string_view kWholeDocument = "body";

// A field of a document that is refused, and why: "is required". The message goes on where the field ends.
struct BadField {
  std::string field;
  std::string message;

  [[nodiscard]] std::string text() const { return field + " " + message; }
  bool operator==(const BadField&) const = default;
};

template <class T>
using Checked = tl::expected<T, BadField>;

tl::unexpected<BadField> bad_field(std::string_view field, std::string_view message);

struct JsonValue {
  enum class Kind : std::uint8_t { null, boolean, number, string, array, object };

  Kind kind = Kind::null;
  bool flag = false;
  std::string text;                // number: as it was written; string: decoded
  std::vector<JsonValue> values;   // elements of an array, members of an object
  std::vector<std::string> names;  // of the members, in their order

  [[nodiscard]] bool is(Kind wanted) const { return kind == wanted; }
  // The member of that name; null when there is none or its value is null.
  [[nodiscard]] const JsonValue* member(std::string_view name) const;
};

// `names` joined as a path; an empty parent is the document.
std::string path_of(std::string_view parent, std::string_view name);
std::string path_of(std::string_view parent, std::size_t index);

// Deeper than any document that is read this way.
inline constexpr unsigned kTreeDepthMax = 8;
// Of one object; finding duplicates costs their square.
inline constexpr std::size_t kTreeMembersMax = 64;

Checked<JsonValue> read_json(std::string_view text);

// The value as JSON text: what was read, without white space.
std::string json_of(const JsonValue& value);

}  // namespace todoke
