// Inside this room: one character after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unicode/utf8.h>

namespace todoke::index {

// The character at `at`, which moves behind it. Negative: no UTF-8.
inline UChar32 next_character(std::string_view text, std::size_t& at) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  UChar32 c = 0;
  U8_NEXT(bytes, at, text.size(), c);  // NOLINT(bugprone-inc-dec-in-conditions): a macro of ICU
  return c;
}

}  // namespace todoke::index
