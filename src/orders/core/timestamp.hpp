// Dates and times in text (RFC 3339).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/async.hpp"

namespace todoke::orders {

// 0 where the clock went back between.
inline std::int64_t millis_between(SystemTime from, SystemTime to) {
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(to - from);
  return std::max<std::int64_t>(0, passed.count());
}

// 2025-08-24T12:34:56.789+09:00, with an offset or Z; a leap second is the second after it, and what is
// beyond microseconds is cut. Nothing for anything else, and for years that a SystemTime can't hold (before
// 1678, after 2261).
std::optional<SystemTime> parse_timestamp(std::string_view text);

// In UTC with microseconds: 2025-08-24T03:34:56.789000Z.
std::string format_timestamp(SystemTime time);

}  // namespace todoke::orders
