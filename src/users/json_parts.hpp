// Pieces of the answers that several routes give: pages of a list, and members that may be null.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/route.hpp"
#include "base/clock.hpp"
#include "base/json_writer.hpp"

namespace todoke::users {

// The usual size of a page, and the largest.
inline constexpr std::int64_t kPageDefault = 50;
inline constexpr std::int64_t kPageMax = 200;

api::Parameter limit_parameter();
api::Parameter cursor_parameter();
// `{"items": […], "next_cursor": …}`
api::Schema page_of(api::Schema entry, std::string_view meaning);
void write_next_cursor(JsonWriter& json, std::string_view cursor);

void write_or_null(JsonWriter& json, std::string_view name, const std::optional<std::string>& text);
void write_or_null(JsonWriter& json, std::string_view name, const std::optional<SystemTime>& time);

}  // namespace todoke::users
