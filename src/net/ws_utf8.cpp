#include "net/ws_utf8.hpp"

#include <cstring>

namespace todoke::net {

bool Utf8Check::feed_byte(std::uint8_t byte) {
  if (missing_ > 0) {
    if (byte < least_ || byte > most_) return false;
    --missing_;
    least_ = 0x80;
    most_ = 0xBF;
    return true;
  }
  if (byte < 0x80) return true;
  if (byte >= 0xC2 && byte <= 0xDF) {
    missing_ = 1;
  } else if (byte >= 0xE0 && byte <= 0xEF) {
    missing_ = 2;
    if (byte == 0xE0) least_ = 0xA0;  // below: overlong
    if (byte == 0xED) most_ = 0x9F;   // above: surrogates
  } else if (byte >= 0xF0 && byte <= 0xF4) {
    missing_ = 3;
    if (byte == 0xF0) least_ = 0x90;  // below: overlong
    if (byte == 0xF4) most_ = 0x8F;   // above: beyond U+10FFFF
  } else {
    return false;
  }
  return true;
}

bool Utf8Check::feed(std::string_view piece) {
  if (!valid_) return false;
  std::size_t at = 0;
  while (at < piece.size()) {
    std::uint64_t eight = 0;
    if (missing_ == 0 && piece.size() - at >= sizeof eight) {
      std::memcpy(&eight, piece.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    if (!feed_byte(static_cast<std::uint8_t>(piece[at]))) {
      valid_ = false;
      return false;
    }
    ++at;
  }
  return true;
}

}  // namespace todoke::net
