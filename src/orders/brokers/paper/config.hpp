// The configuration keys of the paper broker.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace todoke::orders::keys {

inline constexpr Key<std::chrono::milliseconds> kPaperLatency{{
    .name = "broker.paper.latency_ms",
    .fallback = "0",
    .meaning = "How long the paper broker takes for an order.",
    .unit = "ms",
    .min = 0,
    .max = 600'000,
}};
inline constexpr Key<std::int64_t> kPaperPartial{{
    .name = "broker.paper.partial_percent",
    .fallback = "0",
    .meaning = "Orders of a hundred of which the paper broker fills a half only.",
    .min = 0,
    .max = 100,
}};
inline constexpr Key<std::int64_t> kPaperReject{{
    .name = "broker.paper.reject_percent",
    .fallback = "0",
    .meaning = "Orders of a hundred that the paper broker rejects.",
    .min = 0,
    .max = 100,
}};
inline constexpr Key<std::int64_t> kPaperTimeout{{
    .name = "broker.paper.timeout_percent",
    .fallback = "0",
    .meaning = "Tries of a hundred to which the paper broker gives no answer and does nothing.",
    .min = 0,
    .max = 100,
}};
inline constexpr Key<std::int64_t> kPaperLost{{
    .name = "broker.paper.lost_percent",
    .fallback = "0",
    .meaning = "Tries of a hundred that the paper broker executes and whose answer is lost.",
    .min = 0,
    .max = 100,
}};
inline constexpr Key<std::vector<std::string>> kPaperFirst{{
    .name = "broker.paper.first",
    .fallback = "",
    .meaning = "What becomes of the first claims of each order, in this order: fill, partial, reject, "
               "timeout, lost or "
               "down. Later ones are fills.",
    .min = 0,
    .max = 64,
}};
inline constexpr Key<std::chrono::milliseconds> kPaperOutage{{
    .name = "broker.paper.outage_sec",
    .fallback = "0",
    .meaning = "For how long after its first order the paper broker can't be reached.",
    .unit = "s",
    .min = 0,
    .max = 86'400'000,
}};
inline constexpr Key<std::int64_t> kPaperSeed{{
    .name = "broker.paper.seed",
    .fallback = "1",
    .meaning =
        "The paper broker draws its faults and prices from this and the order's key: the same seed gives the "
        "same.",
    .min = 0,
}};

}  // namespace todoke::orders::keys

namespace todoke::orders {

inline std::span<const KeySpec* const> paper_config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kPaperLatency.spec, &keys::kPaperPartial.spec, &keys::kPaperReject.spec,
      &keys::kPaperTimeout.spec, &keys::kPaperLost.spec,    &keys::kPaperFirst.spec,
      &keys::kPaperOutage.spec,  &keys::kPaperSeed.spec,
  };
  return kKeys;
}

}  // namespace todoke::orders
