// JSON strings in Nostr's canonical form: seven short escapes (\n \" \\ \r \t \b \f), the other C0 characters
// as lower-case \u00xx, everything else (0x7F, '/', U+2028, emoji) as it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace todoke::nostr {

// Appends `text`, which must be valid UTF-8, in quotes. True when no character had to be escaped, so that the
// text itself stands between the quotes.
bool append_canonical_string(std::string& out, std::string_view text);

// What stands between the quotes of a JSON string.
enum class EscapeForm : std::uint8_t {
  canonical,       // as append_canonical_string would have written it
  other,           // valid, but written otherwise
  lone_surrogate,  // an escape that is half of a character: no text
  malformed,       // no JSON
};
// `raw` holds no bare control character and ends before an unescaped quote.
EscapeForm escape_form(std::string_view raw);

}  // namespace todoke::nostr
