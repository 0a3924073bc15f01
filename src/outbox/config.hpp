// The configuration keys of the log.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>

#include "base/config.hpp"

namespace todoke::outbox::keys {

inline constexpr Key<std::chrono::milliseconds> kRetention{{
    .name = "log.retention",
    .fallback = "30d",
    .meaning = "How long rows of the log are kept.",
    .unit = "d",
    .min = 1'000,
    .max = 315'360'000'000,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kRetentionMax{{
    .name = "log.retention_max",
    .fallback = "45d",
    .meaning = "How long rows are kept for a mandatory consumer that has not read them; then they go, and it "
               "must be "
               "rebuilt. At least log.retention.",
    .unit = "d",
    .min = 1'000,
    .max = 315'360'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kBytesMax{{
    .name = "log.bytes_max",
    .type = KeyType::size,
    .fallback = "20GiB",
    .meaning =
        "Size of the log beyond which rows past log.retention go even if a mandatory consumer has not read "
        "them.",
    .min = 1024 * 1024,
    .max = std::numeric_limits<std::int64_t>::max(),
    .live = true,
}};
inline constexpr Key<std::int64_t> kPressureRows{{
    .name = "log.pressure_rows",
    .fallback = "100000",
    .meaning = "Rows that a mandatory consumer may be behind before the node stops backfilling (pressure 1). "
               "At five times that it refuses events of low-priority topics (2), at ten times that clients "
               "may send only a quarter of what their rate limits allow (3).",
    .min = 1,
    .max = 1'000'000'000'000,
    .live = true,
}};

}  // namespace todoke::outbox::keys

namespace todoke::outbox {

std::span<const KeySpec* const> config_keys();
Expected<void> check_config(const Config& config);

}  // namespace todoke::outbox
