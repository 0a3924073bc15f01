// SHA-256, by OpenSSL. A small text costs about as much as its hash alone: context and digest stay with the
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace todoke {

// Of the pieces, one after the other.
std::array<std::uint8_t, 32> sha256(std::initializer_list<std::string_view> pieces);

}  // namespace todoke
