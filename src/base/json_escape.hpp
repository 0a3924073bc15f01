// JSON strings in one form: seven short escapes (\n \" \\ \r \t \b \f), the other C0 characters as lower-case
// \u00xx, everything else (0x7F, '/', U+2028, emoji) as it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace todoke {

// Appends `text` in quotes. Bytes that are no UTF-8 become U+FFFD, so that the result is always JSON.
void append_json_string(std::string& out, std::string_view text);
// The same for text that is valid UTF-8, faster. True when no character had to be escaped, so that the text
// itself stands between the quotes.
bool append_valid_json_string(std::string& out, std::string_view text);

// What stands between the quotes of a JSON string.
enum class EscapeForm : std::uint8_t {
  canonical,       // as append_json_string would have written it
  other,           // valid, but written otherwise
  lone_surrogate,  // an escape that is half of a character: no text
  malformed,       // no JSON
};
// `raw` holds no bare control character and ends before an unescaped quote.
EscapeForm escape_form(std::string_view raw);

}  // namespace todoke
