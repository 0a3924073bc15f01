// UTF-8 as RFC 3629 defines it: no surrogates, nothing overlong, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace todoke {

// Checks a text that comes in pieces: a piece may end inside a character. ASCII goes by eight bytes at a
// time.
class Utf8Check {
 public:
  // False as soon as no continuation can make the text valid; stays false then.
  bool feed(std::string_view piece);
  // Whether the text may end here.
  [[nodiscard]] bool complete() const { return valid_ && missing_ == 0; }
  void reset() { *this = Utf8Check(); }

 private:
  bool feed_byte(std::uint8_t byte);

  bool valid_ = true;
  std::uint8_t missing_ = 0;  // continuation bytes still to come
  // Bounds of the next continuation byte; narrower than 80..BF only for the first one.
  std::uint8_t least_ = 0x80;
  std::uint8_t most_ = 0xBF;
};

// The whole text at once, with vector instructions.
bool is_utf8(std::string_view text);

// How many bytes the character at the start of `text` has. 0: none is there, or it is no UTF-8.
std::size_t character_length(std::string_view text);

// The character at `at`, which moves behind it. Negative: no UTF-8, and `at` moves by one byte.
std::int32_t next_character(std::string_view text, std::size_t& at);

// How many characters (code points) valid UTF-8 has.
std::size_t count_characters(std::string_view text);

// The start of `text` that has at most `bytes_max` bytes and cuts no character of valid UTF-8.
std::string_view cut_between_characters(std::string_view text, std::size_t bytes_max);

}  // namespace todoke
