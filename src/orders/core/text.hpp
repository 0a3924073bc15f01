// Inside this room: text in Unicode normalization form C.
#pragma once

#include <string>
#include <string_view>

namespace todoke::orders {

// `text` must be valid UTF-8.
std::string to_nfc(std::string_view text);

// With a question mark in the place of each character that is not shown but does something: C0, DEL, C1, and
// those that turn the direction of writing. `text` must be valid UTF-8.
std::string without_controls(std::string_view text);

}  // namespace todoke::orders
