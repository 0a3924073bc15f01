// Reading JSON with simdjson's on-demand parser, where speed matters. It is fast because it looks only at
// what is asked for, so a text is known to be JSON only when every value has been read and the end was
// reached; check_json tells for any text. The header is heavy: for small documents there is json_value.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "base/json_escape.hpp"

namespace todoke {

namespace od = simdjson::ondemand;

// A parser and the padded copy of the text that it reads. Both grow to the largest text seen and stay: what
// is given to it is bounded by its callers.
class JsonReader {
 public:
  // The document refers to the reader's copy and lives until the next call.
  simdjson::simdjson_result<od::document> read(std::string_view text);
  [[nodiscard]] std::string_view text() const { return {buffer_.data(), size_}; }

 private:
  std::string buffer_;
  std::size_t size_ = 0;
  od::parser parser_;
};

// One for each thread: making one costs more than a message.
JsonReader& thread_reader();

// True when nothing but white space follows what has been read.
inline bool at_end(od::document& document) {
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS;
}

struct JsonString {
  std::string_view raw;   // between the quotes, in the reader's copy
  std::string_view text;  // decoded; the same as `raw` when nothing is escaped
  EscapeForm form = EscapeForm::canonical;
};
// The string that `value` is, and moves on. Nothing when it is something else or malformed; `text` is empty
// when the form is lone_surrogate.
std::optional<JsonString> read_string(od::value& value);

// The name of a member with its quotes.
std::string_view quoted_name(od::field& field);

// Without the white space that simdjson leaves at the end of a token.
std::string_view without_trailing_space(std::string_view token);

// The integer that `value` is. Nothing for fractions, exponents and what 64 bits can't hold.
std::optional<std::int64_t> read_integer(od::value& value);

enum class JsonCheck : std::uint8_t { good, too_deep, not_json };
// Reads all of `text`, on a reader of its own. Takes lone surrogates for JSON, as its grammar does.
JsonCheck check_json(std::string_view text, unsigned depth_max);

}  // namespace todoke
