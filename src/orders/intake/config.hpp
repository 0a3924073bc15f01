// The configuration keys of the order API.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "orders/intake/policy.hpp"

namespace todoke::orders::keys {

inline constexpr Key<std::vector<std::string>> kInstruments{{
    .name = "orders.instruments",
    .meaning = "Instruments that are traded here; an order for another one is refused. Empty: any.",
    .min = 0,
    .max = 10'000,
}};
inline constexpr Key<std::vector<std::string>> kLotSteps{{
    .name = "orders.lot_steps",
    .meaning =
        "Of what the quantity of an instrument must be a multiple: BTC-USD=0.001,USDJPY=1000. An instrument "
        "without one takes any quantity.",
    .min = 0,
    .max = 10'000,
}};
inline constexpr Key<std::string> kTokensFile{{
    .name = "orders.tokens_file",
    .type = KeyType::path,
    .meaning = "File with the bearer tokens that may use the order API: a line is a name and the SHA-256 of "
               "its token "
               "in hex, or a token. Empty: no token is asked for. SIGHUP reads the file again.",
}};
inline constexpr Key<bool> kAllowAnonymous{{
    .name = "orders.allow_anonymous",
    .fallback = "false",
    .meaning = "Whether a node with the role `orders` starts without tokens although server.listen is an "
               "address that others can "
               "reach: everybody there may then send orders.",
}};
inline constexpr Key<std::int64_t> kRatePerMinute{{
    .name = "orders.rate_per_minute",
    .fallback = "0",
    .meaning =
        "Posts of a client (a token, or an address without tokens) in a minute; over it: 429. 0: no limit.",
    .min = 0,
    .max = 10'000'000,
}};
inline constexpr Key<std::int64_t> kBodyBytesMax{{
    .name = "orders.body_bytes_max",
    .type = KeyType::size,
    .fallback = "16KiB",
    .meaning = "Largest body of an order; a larger one gets 413.",
    .min = 1'024,
    .max = 1'048'576,
}};
inline constexpr Key<std::chrono::milliseconds> kAcceptTimeout{{
    .name = "orders.accept_timeout",
    .fallback = "5s",
    .meaning = "How long the database may take to accept an order; then the client gets 503.",
    .unit = "s",
    .min = 100,
    .max = 60'000,
}};
inline constexpr Key<std::int64_t> kWaitersMax{{
    .name = "orders.waiters_max",
    .fallback = "1000",
    .meaning =
        "Requests that may wait for an order at the same time (?wait=); a further one is answered at once.",
    .min = 0,
    .max = 100'000,
}};
inline constexpr Key<std::vector<std::string>> kQtyMax{{
    .name = "orders.limits.qty_max",
    .meaning =
        "Largest quantity of one order for each instrument: BTC-USD=10,*=1000. `*` stands for those that are "
        "not named. Empty: no limit.",
    .min = 0,
    .max = 10'000,
}};
inline constexpr Key<std::vector<std::string>> kNotionalMax{{
    .name = "orders.limits.notional_max",
    .meaning =
        "Largest quantity times price of one order for each instrument, written as orders.limits.qty_max. An "
        "order at the market has no price and passes.",
    .min = 0,
    .max = 10'000,
}};
inline constexpr Key<std::int64_t> kPerSecond{{
    .name = "orders.limits.per_second",
    .fallback = "0",
    .meaning = "Orders that this node takes in a second, of all clients together. 0: no limit.",
    .min = 0,
    .max = 1'000'000,
}};
inline constexpr Key<std::int64_t> kInDoubtMax{{
    .name = "orders.limits.in_doubt_max",
    .fallback = "0",
    .meaning = "When so many open orders are in doubt, no further one is taken. 0: no limit.",
    .min = 0,
    .max = 1'000'000,
}};

}  // namespace todoke::orders::keys

namespace todoke::orders {

std::span<const KeySpec* const> api_config_keys();

// Throws UserError that names the key.
Policy policy_from(const Config& config);

}  // namespace todoke::orders
