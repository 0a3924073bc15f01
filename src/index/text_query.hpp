// What people type, as a tsquery over the tokens of documents.
//
// All parts between white space must be found. A part of several tokens (`example.com`, `東京都庁`,
// `Tシャツ`) must be found as it stands, in a row. The last word is also found as the beginning of a word,
// unless a sign follows it (`fox.`). A single character of a script without spaces is found wherever it
// stands. `key:value` extensions (NIP-50) are passed over, as if they were not there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace todoke::index {

inline constexpr std::size_t kQueryBytesMax = 1'024;
// Each costs an index scan; a sentence that somebody pastes fits.
inline constexpr std::size_t kQueryTokensMax = 64;
// Characters. One letter begins a large part of all words.
inline constexpr std::size_t kPrefixMin = 2;

struct TextQuery {
  enum class Finds {
    everything,  // no text was given, or only extensions
    nothing,     // there is text, but no token in it
    tokens,
  };
  Finds finds = Finds::everything;
  std::string tsquery;  // in Postgres' notation
};

Expected<TextQuery> parse_text_query(std::string_view text);

}  // namespace todoke::index
