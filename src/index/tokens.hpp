// What is looked for in a text: its words, and pairs of characters where a script writes no spaces.
//
// The text is normalised first (NFKC, case folded, invisible characters removed). Then
//   - letters and digits in a row are one word;
//   - characters of Chinese, Japanese, Korean, Thai, Lao, Khmer and Burmese script in a row are taken in
//   pairs that
//     overlap, and the last one also alone: every character begins exactly one token, so that one character
//     is found as a prefix (docs/decisions/0009-search-tokens.md has the measurements);
//   - an emoji is a token of its own;
//   - everything else separates, control characters too.
// Documents and queries pass the same function.
//
// Cost: about 5 us for a post of 100 characters; no allocation for a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace todoke::index {

// A longer word is known by its beginning; every bech32 name of an event or key without relay hints fits.
inline constexpr std::size_t kWordBytesMax = 64;
// Of one document; what comes after is not found. A tsvector has no positions beyond 16,383.
inline constexpr std::size_t kTokensMax = 16'000;

// Bytes that are no UTF-8 stay as they are; no token holds them, they separate.
std::string normal_text(std::string_view text);

enum class TokenKind : std::uint8_t {
  word,
  pair,    // two characters of a run
  last,    // the last character of a run
  single,  // a run of one character
  symbol,  // an emoji
};

struct Token {
  std::uint32_t offset;  // in the normalised text
  std::uint16_t size;
  std::uint16_t position;  // from 1, without gaps
  TokenKind kind;
};

// The tokens of a text that is normalised already, in order; at most `count_max`.
std::vector<Token> tokens_of(std::string_view normal, std::size_t count_max = kTokensMax);

inline std::string_view text_of(const Token& token, std::string_view normal) {
  return normal.substr(token.offset, token.size);
}

}  // namespace todoke::index
