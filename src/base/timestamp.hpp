// Dates and times in text: RFC 3339 for everything of our own, HTTP's form for its headers. Always UTC.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace todoke {

// 2025-08-24T12:34:56.789+09:00, with an offset or Z; a leap second is the second after it, and what is
// beyond microseconds is cut. Nothing for anything else, and for years that a SystemTime can't hold (before
// 1678, after 2261).
std::optional<SystemTime> parse_timestamp(std::string_view text);

// 2025-08-24T03:34:56.789000Z; `fraction_digits` (0 to 6) of the second, the rest is cut.
std::string format_timestamp(SystemTime time, unsigned fraction_digits = 6);

// Sun, 24 Aug 2025 03:34:56 GMT (RFC 9110). Nothing for anything else, and for the same years.
std::optional<SystemTime> parse_http_date(const std::string& text);
std::string format_http_date(SystemTime time);

}  // namespace todoke
