// The configuration keys of what the node says of itself.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace todoke::bootstrap::keys {

inline constexpr Key<std::string> kEnabled{{
    .name = "bootstrap.enabled",
    .fallback = "on",
    .meaning =
        "Whether a relay signs and publishes the node's descriptor (kind 39000) and what it does for each "
        "topic (kind 39001).",
    .choices = "on|off",
}};
inline constexpr Key<std::string> kKeyFile{{
    .name = "bootstrap.key_file",
    .type = KeyType::path,
    .fallback = "",
    .meaning =
        "File with the secret of the node's keys; hosts that share it are one node. Empty: node.key in "
        "data_dir. It is made when it is not there.",
}};
inline constexpr Key<std::chrono::milliseconds> kLifetime{{
    .name = "bootstrap.lifetime",
    .fallback = "7d",
    .meaning =
        "How long what the node says of itself holds (`exp`). It is signed again when half of that is over.",
    .unit = "d",
    .min = 3'600'000,
    .max = 31'536'000'000,
    .live = true,
}};
inline constexpr Key<std::string> kApiUrl{{
    .name = "bootstrap.api_url",
    .fallback = "",
    .meaning =
        "Where clients reach the User API, such as https://node.example/api/v1. Empty: the descriptor names "
        "none.",
    .live = true,
}};
inline constexpr Key<std::string> kJurisdiction{{
    .name = "bootstrap.jurisdiction",
    .fallback = "",
    .meaning = "Whose law the node is under, as its descriptor says.",
    .live = true,
}};
inline constexpr Key<std::vector<std::string>> kRoles{{
    .name = "bootstrap.roles",
    .fallback = "",
    .meaning =
        "The roles that the descriptor names, where they are spread over several processes. Empty: those of "
        "the process that signs it.",
    .max = 16,
    .live = true,
}};

}  // namespace todoke::bootstrap::keys

namespace todoke::bootstrap {

std::span<const KeySpec* const> config_keys();
// Refuses a role that is no word.
Expected<void> check_config(const Config& config);

}  // namespace todoke::bootstrap
