// Places in a list that is paged by key: the values of the last entry's key, as a text that clients hand back
// as it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace todoke::api {

// None of the values holds a line break.
std::string cursor_of(const std::vector<std::string>& values);

// Nothing for a text that cursor_of never made of so many values.
std::optional<std::vector<std::string>> values_of_cursor(std::string_view cursor, std::size_t count);

}  // namespace todoke::api
