// Inside this room: text in Unicode normalization form C, and how long it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace todoke::orders {

// `text` must be valid UTF-8.
std::string to_nfc(std::string_view text);

// Code points, not bytes.
std::size_t characters(std::string_view text);

}  // namespace todoke::orders
