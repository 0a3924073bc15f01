// The configuration keys of the worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace todoke::orders::keys {

inline constexpr Key<bool> kEnabled{{
    .name = "outbox.enabled",
    .fallback = "false",
    .meaning =
        "Whether the role `orders` sends orders. Off: they are accepted and wait. `todoke up` turns it on "
        "unless it is set.",
    .environment = "OUTBOX_ENABLED",
}};
inline constexpr Key<std::int64_t> kConcurrency{{
    .name = "outbox.concurrency",
    .fallback = "4",
    .meaning = "Orders that a worker sends at the same time.",
    .min = 1,
    .max = 4'096,
    .reread = true,
    .environment = "OUTBOX_CONCURRENCY",
}};
inline constexpr Key<std::int64_t> kBatch{{
    .name = "outbox.batch",
    .fallback = "32",
    .meaning = "Orders that a worker claims at once.",
    .min = 1,
    .max = 1'000,
    .environment = "OUTBOX_BATCH",
}};
inline constexpr Key<std::chrono::milliseconds> kPollInterval{{
    .name = "outbox.poll_interval_sec",
    .fallback = "0.5",
    .meaning =
        "How often a worker that has nothing to do looks by itself; it is woken for new orders anyway.",
    .unit = "s",
    .min = 10,
    .max = 60'000,
    .environment = "OUTBOX_POLL_INTERVAL_SEC",
}};
inline constexpr Key<std::chrono::milliseconds> kLease{{
    .name = "outbox.lock_lease_sec",
    .fallback = "120",
    .meaning =
        "How long an order stays a worker's without a sign of life. At least broker.timeout_ms and a second.",
    .unit = "s",
    .min = 1'000,
    .max = 86'400'000,
    .reread = true,
    .environment = "OUTBOX_LOCK_LEASE_SEC",
}};
inline constexpr Key<std::int64_t> kMaxAttempts{{
    .name = "outbox.max_attempts",
    .fallback = "6",
    .meaning = "Failed tries, lapsed leases included, after which an order is aborted.",
    .min = 1,
    .max = 1'000,
    .environment = "OUTBOX_MAX_ATTEMPTS",
}};
inline constexpr Key<std::vector<std::string>> kBackoff{{
    .name = "outbox.backoff_sec",
    .fallback = "5,10,20,40,80,160",
    .meaning =
        "Seconds to wait after the first, second … failed try; the last entry repeats. 0 to 20 % are added.",
    .min = 1,
    .max = 64,
    .environment = "OUTBOX_BACKOFF_SEC",
}};
inline constexpr Key<std::string> kAdapter{{
    .name = "broker.adapter",
    .fallback = "paper",
    .meaning =
        "Where orders go. paper: a broker of the house that fills every order. http: a broker behind HTTP "
        "(orders.http.url). fix: a broker that speaks FIX 4.4 (orders.fix.host). noop: nowhere, every order "
        "is filled at once (for measurements).",
    .choices = "paper|http|fix|noop",
}};
inline constexpr Key<std::chrono::milliseconds> kBrokerTimeout{{
    .name = "broker.timeout_ms",
    .fallback = "2500",
    .meaning = "How long the broker may take for one order.",
    .unit = "ms",
    .min = 10,
    .max = 600'000,
    .environment = "BROKER_TIMEOUT_MS",
}};
inline constexpr Key<std::string> kRisk{{
    .name = "orders.risk",
    .fallback = "warn",
    .meaning = "What becomes of an order whose risk_constraints its broker can't enforce. warn: it is sent, "
               "with the "
               "warning RISK_NOT_ENFORCED. strict: it is aborted unsent (VALIDATION_ERROR).",
    .choices = "warn|strict",
}};
inline constexpr Key<std::string> kSerializeBy{{
    .name = "orders.serialize_by",
    .fallback = "none",
    .meaning =
        "none: orders are independent. instrument: an order is sent when every earlier one of its instrument "
        "is settled, whichever worker has it.",
    .choices = "none|instrument",
}};
inline constexpr Key<std::int64_t> kHistoryMonths{{
    .name = "orders.history_months",
    .fallback = "0",
    .meaning =
        "Whole months that the journal of tries and the archives (finished orders with their results, FIX "
        "reports) are kept; older ones are dropped, with what the paper broker's book has of that time. 0: "
        "for ever.",
    .min = 0,
    .max = 1'200,
}};
inline constexpr Key<std::chrono::milliseconds> kMaxAgeIoc{{
    .name = "orders.max_age_sec.ioc",
    .fallback = "0",
    .meaning = "An IOC order that was not sent within this time of its acceptance is aborted "
               "(ORDER_EXPIRED). 0: never.",
    .unit = "s",
    .min = 0,
    .max = 31'536'000'000,
}};
inline constexpr Key<std::chrono::milliseconds> kMaxAgeFok{{
    .name = "orders.max_age_sec.fok",
    .fallback = "0",
    .meaning = "The same for FOK orders.",
    .unit = "s",
    .min = 0,
    .max = 31'536'000'000,
}};
inline constexpr Key<std::chrono::milliseconds> kMaxAgeGtc{{
    .name = "orders.max_age_sec.gtc",
    .fallback = "0",
    .meaning = "The same for GTC orders.",
    .unit = "s",
    .min = 0,
    .max = 31'536'000'000,
}};

}  // namespace todoke::orders::keys

namespace todoke::orders {

std::span<const KeySpec* const> worker_config_keys();
Expected<void> check_worker_config(const Config& config);

}  // namespace todoke::orders
