// The configuration keys of the gossip bridge.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace todoke::gossip::keys {

inline constexpr Key<std::string> kEnabled{{
    .name = "gossip.enabled",
    .fallback = "auto",
    .meaning =
        "Whether a relay takes and passes on events by iroh-gossip. auto: where this build has it. on: a "
        "build without it refuses to start.",
    .choices = "auto|on|off",
}};
inline constexpr Key<std::string> kListen{{
    .name = "gossip.listen",
    .type = KeyType::address,
    .fallback = "0.0.0.0:7449",
    .meaning =
        "UDP address of the gossip endpoint. `todoke up` takes 127.0.0.1:7449 unless it is set. When the "
        "port of the default is in use, a free one is taken.",
}};
inline constexpr Key<std::vector<std::string>> kPeers{{
    .name = "gossip.peers",
    .fallback = "",
    .meaning =
        "Nodes to dial, each as node_id@host:port; `todoke p2p info` prints that of a node. In the place of "
        "host:port, or after it and a +, the URL of an iroh relay server. More can be added with `todoke p2p "
        "add`.",
    .max = 200,
    .live = true,
}};
inline constexpr Key<std::vector<std::string>> kBlocked{{
    .name = "gossip.blocked",
    .fallback = "",
    .meaning = "Node ids (64 hex digits) that may not connect.",
    .max = 10'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kConnectionsMax{{
    .name = "gossip.connections_max",
    .fallback = "256",
    .meaning = "Connections of the gossip endpoint; more are refused.",
    .min = 1,
    .max = 100'000,
}};
inline constexpr Key<std::int64_t> kEventsPerSecond{{
    .name = "gossip.events_per_second",
    .fallback = "5000",
    .meaning =
        "Messages that are looked at in a second: from each neighbour, and twice as many from all. What "
        "comes beyond is dropped and counted.",
    .min = 1,
    .max = 1'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kRefusedPerMinute{{
    .name = "gossip.refused_per_minute",
    .fallback = "600",
    .meaning =
        "Messages of a neighbour that break a rule; beyond it everything that it passes on is dropped for "
        "a minute.",
    .min = 1,
    .max = 100'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kSentPerSecond{{
    .name = "gossip.sent_per_second",
    .fallback = "2000",
    .meaning =
        "Pace of the messages that go out: the library loses what comes faster than the other side reads.",
    .min = 1,
    .max = 100'000,
    .live = true,
}};

inline constexpr Key<std::vector<std::string>> kRelays{{
    .name = "gossip.relays",
    .fallback = "",
    .meaning = "URLs of iroh relay servers (https://…) through which nodes reach each other that can't do so "
               "directly. None: no relay server is asked.",
    .max = 10,
}};
inline constexpr Key<std::chrono::milliseconds> kReconcileEvery{{
    .name = "gossip.reconcile_every",
    .fallback = "5m",
    .meaning =
        "How often a node compares what it has of a topic with each neighbour, beside the times when it "
        "knows that it has missed something.",
    .unit = "s",
    .min = 1'000,
    .max = 86'400'000,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kReconcileWindow{{
    .name = "gossip.reconcile_window",
    .fallback = "30d",
    .meaning = "How far back a node compares with a new neighbour, by created_at. Older events come by "
               "`todoke backfill`.",
    .unit = "s",
    .min = 1'000,
    .max = 315'360'000'000,
    .live = true,
}};

inline constexpr Key<std::vector<std::string>> kBackfillFrom{{
    .name = "gossip.backfill_from",
    .fallback = "",
    .meaning = "WebSocket URLs of relays (wss://…) from which the node keeps filling its topics, as `todoke "
               "backfill` does once; of topics whose ingest_policy allows it.",
    .max = 20,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kBackfillEvery{{
    .name = "gossip.backfill_every",
    .fallback = "5m",
    .meaning = "How often the relays of gossip.backfill_from are asked for what is new.",
    .unit = "s",
    .min = 1'000,
    .max = 86'400'000,
}};

}  // namespace todoke::gossip::keys

namespace todoke::gossip {

std::span<const KeySpec* const> config_keys();
Expected<void> check_config(const Config& config);

// Whether a relay of this configuration has a bridge.
bool is_on(const Config& config);

}  // namespace todoke::gossip
