#include "base/utf8.hpp"

#include <algorithm>
#include <cstring>

#include <simdjson.h>

namespace todoke {
namespace {

constexpr std::size_t kCharacterBytesMax = 4;

bool continues_character(char c) {
  return (static_cast<std::uint8_t>(c) & 0xC0U) == 0x80U;
}

}  // namespace

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

bool is_utf8(std::string_view text) {
  return simdjson::validate_utf8(text.data(), text.size());
}

std::size_t character_length(std::string_view text) {
  Utf8Check check;
  for (std::size_t i = 0; i < std::min(text.size(), kCharacterBytesMax); ++i) {
    if (!check.feed(text.substr(i, 1))) return 0;
    if (check.complete()) return i + 1;
  }
  return 0;
}

std::int32_t next_character(std::string_view text, std::size_t& at) {
  const auto length = character_length(text.substr(at));
  const auto lead = static_cast<std::uint8_t>(text[at]);
  if (length == 0) {
    ++at;
    return -1;
  }
  // The lead byte of a character of n bytes begins with n ones and a zero.
  std::int32_t character = length == 1 ? lead : lead & (0xFF >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    character = character << 6 | (static_cast<std::uint8_t>(text[at + i]) & 0x3F);
  }
  at += length;
  return character;
}

std::size_t count_characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_character));
}

std::string_view cut_between_characters(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  auto end = bytes_max;
  while (end > 0 && continues_character(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace todoke
