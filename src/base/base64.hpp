// Base64 (RFC 4648) in its two alphabets. Strict: what comes back from a text gives the same text again, but
// for the padding, which may be there or not.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace todoke {

enum class Base64 : std::uint8_t {
  standard,  // + and /, written with padding
  url,       // - and _, written without
};

std::string to_base64(std::span<const std::uint8_t> bytes, Base64 alphabet = Base64::standard);

// The bytes as a text. Nothing for another character, a length that no bytes have, or bits that are left
// over.
std::optional<std::string> from_base64(std::string_view text, Base64 alphabet = Base64::standard);

}  // namespace todoke
