// UTF-8 as RFC 3629 defines it (no surrogates, nothing overlong, nothing above U+10FFFF), checked piece by
// piece: a piece may end inside a code point. ASCII goes by eight bytes at a time.
#pragma once

#include <cstdint>
#include <string_view>

namespace todoke::net {

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
  std::uint8_t least_ =
      0x80;  // bounds of the next continuation byte; narrower than 80..BF only for the first one
  std::uint8_t most_ = 0xBF;
};

inline bool is_utf8(std::string_view text) {
  Utf8Check check;
  return check.feed(text) && check.complete();
}

}  // namespace todoke::net
