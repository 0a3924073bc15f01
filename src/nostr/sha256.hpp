// SHA-256.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace todoke::nostr {

// Of the pieces, one after the other.
std::array<std::uint8_t, 32> sha256(std::initializer_list<std::string_view> pieces);

}  // namespace todoke::nostr
