// What can be configured of the administration.
#pragma once

#include <chrono>
#include <span>

#include "base/config.hpp"

namespace todoke::admin {

namespace keys {

inline constexpr Key<std::chrono::milliseconds> kSessionIdle{{
    .name = "admin.session_idle",
    .fallback = "30m",
    .meaning = "A session of the Admin API that is not used for so long ends.",
    .unit = "s",
    .min = 60'000,
    .max = 86'400'000,
}};
inline constexpr Key<std::chrono::milliseconds> kSessionMax{{
    .name = "admin.session_max",
    .fallback = "12h",
    .meaning = "A session of the Admin API ends after so long, however much it is used.",
    .unit = "s",
    .min = 60'000,
    .max = 604'800'000,
}};

std::span<const KeySpec* const> all();

}  // namespace keys

}  // namespace todoke::admin
