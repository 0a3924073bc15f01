// The configuration keys of the User API.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "base/config.hpp"

namespace todoke::users::keys {

inline constexpr Key<std::string> kSecretFile{{
    .name = "users.secret_file",
    .type = KeyType::path,
    .meaning = "File with the secret that signs access tokens; nodes that share it take each other's tokens. "
               "Empty: users.key in data_dir. It is made when it is not there.",
}};
inline constexpr Key<std::chrono::milliseconds> kTokenLifetime{{
    .name = "users.token_lifetime",
    .fallback = "15m",
    .meaning = "How long an access token holds. A disabled account ends at once all the same.",
    .unit = "m",
    .min = 60'000,
    .max = 86'400'000,
}};
inline constexpr Key<std::int64_t> kAuthPerMinute{{
    .name = "users.auth_per_minute",
    .fallback = "20",
    .meaning = "Requests to log in of an address in a minute; over it: 429.",
    .min = 1,
    .max = 1'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kPublicPerMinute{{
    .name = "users.public_per_minute",
    .fallback = "120",
    .meaning = "Requests of an address in a minute for what needs no login.",
    .min = 1,
    .max = 1'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kProtectedPerMinute{{
    .name = "users.protected_per_minute",
    .fallback = "120",
    .meaning = "Requests in a minute for what needs a login: of an address, and of a public key.",
    .min = 1,
    .max = 1'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kPendingRequestsMax{{
    .name = "users.pending_requests_max",
    .fallback = "5",
    .meaning = "Subscription requests of a public key that wait for a decision at the same time.",
    .min = 1,
    .max = 10'000,
    .live = true,
}};
inline constexpr Key<std::string> kAutoApprove{{
    .name = "users.auto_approve",
    .fallback = "off",
    .meaning = "Which subscription requests are approved without an operator. off: none. plan: those of "
               "accounts that an operator has given a plan. invite: those that come with an invite code.",
    .choices = "off|plan|invite",
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kTrendingWindow{{
    .name = "users.trending_window",
    .fallback = "24h",
    .meaning = "How far back replies, reactions and reposts count for what is trending.",
    .unit = "h",
    .min = 3'600'000,
    .max = 2'592'000'000,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kTrendingInterval{{
    .name = "users.trending_interval",
    .fallback = "60s",
    .meaning = "How often it is computed what is trending.",
    .unit = "s",
    .min = 1'000,
    .max = 3'600'000,
}};

}  // namespace todoke::users::keys

namespace todoke::users {

std::span<const KeySpec* const> config_keys();

}  // namespace todoke::users
