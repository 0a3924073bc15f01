// The configuration keys of the relay.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/config.hpp"

namespace todoke::relay::keys {

inline constexpr Key<std::string> kTopicPolicy{{
    .name = "relay.topic_policy",
    .fallback = "topics",
    .meaning =
        "topics: an event must have a `t` tag with a topic id, and a REQ must ask for `#t`. open: a plain "
        "Nostr relay.",
    .choices = "topics|open",
}};
inline constexpr Key<std::string> kAcceptTopics{{
    .name = "relay.accept_topics",
    .fallback = "listed",
    .meaning = "listed: the topics that are enabled (`todoke topic`). any: every topic id.",
    .choices = "listed|any",
}};
inline constexpr Key<std::string> kNetworkId{{
    .name = "topics.network_id",
    .fallback = "kukuri:main:",
    .meaning = "Goes into the id of a topic name, so that networks with the same names stay apart.",
}};
inline constexpr Key<std::vector<std::string>> kReserved{{
    .name = "topics.reserved",
    .meaning = "Topic ids beyond kukuri:<64 hex>, kukuri:global and kukuri:user:<64 hex>.",
    .min = 0,
    .max = 1'000,
}};
inline constexpr Key<std::string> kMapping{{
    .name = "topics.mapping",
    .fallback = "v1",
    .meaning =
        "Which mapping from a topic name to its id `todoke topic` uses. both: during a migration, a name "
        "stands for its ids by v1 and v2.",
    .choices = "v1|v2|both",
}};
inline constexpr Key<std::int64_t> kTopicsMax{{
    .name = "topics.enabled_max",
    .fallback = "10000",
    .meaning = "Topics that the node accepts at once.",
    .min = 1,
    .max = 1'000'000,
}};
inline constexpr Key<std::string> kName{{
    .name = "relay.name",
    .fallback = "todoke",
    .meaning = "Name of the relay in its information document (NIP-11).",
    .live = true,
}};
inline constexpr Key<std::string> kDescription{{
    .name = "relay.description",
    .meaning = "Description of the relay in its information document.",
    .live = true,
}};
inline constexpr Key<std::string> kContact{{
    .name = "relay.contact",
    .meaning = "Where its operator can be reached, as a URI such as mailto:…, in its information document.",
    .live = true,
}};
inline constexpr Key<std::string> kPubkey{{
    .name = "relay.pubkey",
    .meaning = "Public key of its operator, 64 hex digits, in its information document.",
    .live = true,
}};
inline constexpr Key<std::vector<std::string>> kAdmins{{
    .name = "relay.admins",
    .meaning = "Public keys of those who may ban authors, events and addresses over HTTP (NIP-86), 64 hex "
               "digits each.",
    .min = 0,
    .max = 100,
    .live = true,
}};
inline constexpr Key<std::string> kSoftware{{
    .name = "relay.software",
    .meaning = "Where its software can be found, as a URL, in its information document.",
    .live = true,
}};
inline constexpr Key<std::string> kIcon{{
    .name = "relay.icon",
    .meaning = "URL of a square picture that stands for the relay, in its information document.",
    .live = true,
}};
inline constexpr Key<std::string> kBanner{{
    .name = "relay.banner",
    .meaning = "URL of a wide picture that shows the relay, in its information document.",
    .live = true,
}};
inline constexpr Key<std::string> kPostingPolicy{{
    .name = "relay.posting_policy",
    .meaning = "URL of what may be posted to the relay, in its information document.",
    .live = true,
}};
inline constexpr Key<std::string> kPrivacyPolicy{{
    .name = "relay.privacy_policy",
    .meaning = "URL of the relay's privacy policy, in its information document.",
    .live = true,
}};
inline constexpr Key<std::string> kTermsOfService{{
    .name = "relay.terms_of_service",
    .meaning = "URL of the relay's terms of service, in its information document.",
    .live = true,
}};
inline constexpr Key<std::string> kPublicUrl{{
    .name = "relay.public_url",
    .meaning = "The URL by which clients know the relay, ws:// or wss://, such as wss://relay.example.org. "
               "NIP-42 answers must "
               "name it; where it is not set, the host that the client connected to.",
    .live = true,
}};
inline constexpr Key<std::vector<std::string>> kPolicyCommand{{
    .name = "relay.policy_command",
    .meaning = "A program, by its absolute path, and its arguments, that decides over each event that comes, "
               "in the protocol of "
               "strfry's plugins.",
    .min = 0,
    .max = 100,
    .reread = true,
}};
inline constexpr Key<std::chrono::milliseconds> kPolicyTimeout{{
    .name = "relay.policy_timeout",
    .fallback = "2s",
    .meaning = "How long relay.policy_command may take for an event.",
    .unit = "ms",
    .min = 10,
    .max = 60'000,
    .live = true,
}};
inline constexpr Key<std::string> kPolicyOnFailure{{
    .name = "relay.policy_on_failure",
    .fallback = "refuse",
    .meaning = "What becomes of an event over which relay.policy_command does not decide: it does not answer "
               "in time, does not "
               "run, or is asked more than it can answer.",
    .choices = "refuse|accept",
    .live = true,
}};
inline constexpr Key<std::int64_t> kMessageBytesMax{{
    .name = "relay.message_bytes_max",
    .type = KeyType::size,
    .fallback = "128KiB",
    .meaning = "Largest message of a client.",
    .min = 4'096,
    .max = 16 * 1024 * 1024,
}};
inline constexpr Key<std::int64_t> kEventBytesMax{{
    .name = "relay.event_bytes_max",
    .type = KeyType::size,
    .fallback = "64KiB",
    .meaning = "Largest event, as JSON without white space.",
    .min = 1'024,
    .max = 1024 * 1024,  // what nostr::parse_event takes
    .live = true,
}};
inline constexpr Key<std::int64_t> kTagsMax{{
    .name = "relay.tags_max",
    .fallback = "2000",
    .meaning = "Tags of an event.",
    .min = 1,
    .max = 100'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kTagsBytesMax{{
    .name = "relay.tags_bytes_max",
    .type = KeyType::size,
    .fallback = "64KiB",
    .meaning =
        "Bytes of all strings in an event's tags together. A limit of their own, so that room for long "
        "texts is no room for tags, which cost rows.",
    .min = 256,
    .max = 1024 * 1024,
    .live = true,
}};
inline constexpr Key<std::int64_t> kFiltersMax{{
    .name = "relay.filters_max",
    .fallback = "20",
    .meaning = "Filters of a REQ or COUNT.",
    .min = 1,
    .max = 1'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kSubscriptionsMax{{
    .name = "relay.subscriptions_max",
    .fallback = "50",
    .meaning = "Open subscriptions of a connection.",
    .min = 1,
    .max = 10'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kLimitDefault{{
    .name = "relay.limit_default",
    .fallback = "500",
    .meaning = "Stored events for a filter that has no limit.",
    .min = 1,
    .max = 100'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kLimitMax{{
    .name = "relay.limit_max",
    .fallback = "5000",
    .meaning =
        "Largest limit of a filter; a larger one counts as this. A REQ ends at 2 MiB of stored events in "
        "any case.",
    .min = 1,
    .max = 100'000,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kFutureMax{{
    .name = "relay.created_at_future_max",
    .fallback = "15m",
    .meaning = "How far in the future the created_at of an event may be.",
    .unit = "s",
    .min = 0,
    .max = 31'536'000'000,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kPastMax{{
    .name = "relay.created_at_past_max",
    .fallback = "0",
    .meaning = "How far in the past the created_at of an event may be. 0: no bound.",
    .unit = "s",
    .min = 0,
    .max = 3'153'600'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kDifficultyMin{{
    .name = "relay.difficulty_min",
    .fallback = "0",
    .meaning = "Proof of work that an event must have (NIP-13), in leading zero bits of its id.",
    .min = 0,
    .max = 64,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kQueryTimeout{{
    .name = "relay.query_timeout",
    .fallback = "5s",
    .meaning = "Time for the stored events of a REQ and for a COUNT; then it is CLOSED.",
    .unit = "s",
    .min = 10,
    .max = 300'000,
    .live = true,
}};
inline constexpr Key<std::string> kSearch{{
    .name = "relay.search",
    .fallback = "auto",
    .meaning = "Whether a filter may have `search` (NIP-50). auto: on with relay.topic_policy = open, off "
               "with topics.",
    .choices = "auto|on|off",
}};
inline constexpr Key<std::string> kCompression{{
    .name = "relay.compression",
    .fallback = "on",
    .meaning = "Whether permessage-deflate is offered to clients.",
    .choices = "on|off",
}};
inline constexpr Key<std::chrono::milliseconds> kIdleTimeout{{
    .name = "relay.idle_timeout",
    .fallback = "75s",
    .meaning = "A client from which nothing came for so long, not even a pong, is closed. It gets a ping "
               "after two fifths of that.",
    .unit = "s",
    .min = 200,
    .max = 3'600'000,
}};
inline constexpr Key<std::chrono::milliseconds> kMessageTimeout{{
    .name = "relay.message_timeout",
    .fallback = "30s",
    .meaning = "Time from the first byte of a message to its last; a slower connection is closed.",
    .unit = "s",
    .min = 100,
    .max = 3'600'000,
}};
inline constexpr Key<std::chrono::milliseconds> kSendTimeout{{
    .name = "relay.send_timeout",
    .fallback = "20s",
    .meaning = "Time for one write to a client; a slower one is cut off.",
    .unit = "s",
    .min = 100,
    .max = 3'600'000,
}};
inline constexpr Key<std::int64_t> kSendQueueBytesMax{{
    .name = "relay.send_queue_bytes_max",
    .type = KeyType::size,
    .fallback = "16MiB",
    .meaning = "Bytes that may wait for one client; one that reads too slowly is closed.",
    .min = 64 * 1024,
    .max = 1024LL * 1024 * 1024,
}};
inline constexpr Key<std::int64_t> kNegentropyEventsMax{{
    .name = "relay.negentropy_events_max",
    .fallback = "1000000",
    .meaning = "Events that a client may compare at once (NIP-77). 40 bytes each as long as it does, and "
               "twice that while they are "
               "read; all clients together take 256 MiB, or twice as much as one may.",
    .min = 1,
    .max = 100'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kCacheEvents{{
    .name = "relay.cache_events",
    .fallback = "1000",
    .meaning = "Recent events of a topic that are kept in memory; with relay.topic_policy open also those of "
               "a tag, of an "
               "author, of a kind, and of all.",
    .min = 10,
    .max = 100'000,
}};
inline constexpr Key<std::int64_t> kCacheBytes{{
    .name = "relay.cache_bytes",
    .type = KeyType::size,
    .fallback = "64MiB",
    .meaning = "Memory for recent events. 0: none are kept.",
    .min = 0,
    .max = 64LL * 1024 * 1024 * 1024,
}};
inline constexpr Key<std::int64_t> kEventsPerMinute{{
    .name = "limits.events_per_minute",
    .fallback = "120",
    .meaning = "EVENTs of a client: of its address, and of its key besides once authenticated. A large one "
               "counts as several.",
    .min = 1,
    .max = 100'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kReqsPerMinute{{
    .name = "limits.reqs_per_minute",
    .fallback = "60",
    .meaning = "REQs, COUNTs, AUTHs and HTTP requests of a client, and as many CLOSEs. A large one counts as "
               "several, and so does a large answer.",
    .min = 1,
    .max = 100'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kConnectionsPerMinute{{
    .name = "limits.connections_per_minute",
    .fallback = "30",
    .meaning = "New WebSocket connections of an address.",
    .min = 1,
    .max = 100'000'000,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kReadBudget{{
    .name = "limits.read_seconds_per_minute",
    .fallback = "10",
    .meaning =
        "Time in the database that the stored reads of an address may take in a minute, and as much for "
        "its COUNTs, before those of others go first. 0, and limits.rates = off at the start: no limit.",
    .unit = "s",
    .min = 0,
    .max = 3'600'000,
}};
inline constexpr Key<std::int64_t> kAddressFactor{{
    .name = "limits.address_factor",
    .fallback = "1",
    .meaning = "How many clients' rates an address has, where users share addresses. Those who have not "
               "authenticated share one client's rates all the same.",
    .min = 1,
    .max = 1'000,
    .live = true,
}};
inline constexpr Key<std::string> kAuthMode{{
    .name = "auth.mode",
    .fallback = "off",
    .meaning =
        "required: from auth.enforce_at on, clients must authenticate (NIP-42) before EVENT, REQ and COUNT.",
    .choices = "off|required",
    .live = true,
}};
inline constexpr Key<std::string> kChallenge{{
    .name = "auth.challenge",
    .fallback = "connect",
    .meaning =
        "When a new connection gets its AUTH challenge. connect: at once. needed: before the first answer "
        "that asks for authentication; for clients that give up when a relay greets them. Where "
        "auth.mode = required is in force it comes at once in any case.",
    .choices = "connect|needed",
    .live = true,
}};
inline constexpr Key<std::int64_t> kEnforceAt{{
    .name = "auth.enforce_at",
    .fallback = "0",
    .meaning = "Unix time from which auth.mode = required is in force. 0: at once.",
    .min = 0,
    .max = 253'402'300'799,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kGrace{{
    .name = "auth.grace_seconds",
    .fallback = "900",
    .meaning = "How long after auth.enforce_at older connections may go on without authentication.",
    .unit = "s",
    .min = 0,
    .max = 31'536'000'000,
    .live = true,
}};
inline constexpr Key<std::chrono::milliseconds> kAuthTimeout{{
    .name = "auth.ws_auth_timeout_seconds",
    .fallback = "10",
    .meaning = "How long a new connection may take to authenticate where it must.",
    .unit = "s",
    .min = 100,
    .max = 3'600'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kRegularDays{{
    .name = "retention.regular_days",
    .fallback = "30",
    .meaning = "Days that a regular event is kept after it was accepted. It goes with its week, so "
               "up to seven days later. A topic's retention_days goes before it.",
    .min = 1,
    .max = 36'500,
    .live = true,
}};
inline constexpr Key<std::int64_t> kSupersededDays{{
    .name = "retention.superseded_days",
    .fallback = "7",
    .meaning = "Days that a version of a replaceable or addressable event is kept after a newer one "
               "replaced it, or after it was deleted or has expired. The current version stays. A "
               "topic's superseded_days goes before it.",
    .min = 1,
    .max = 36'500,
    .live = true,
}};
inline constexpr Key<std::int64_t> kDeletionDays{{
    .name = "retention.deletion_days",
    .fallback = "180",
    .meaning = "Days that a deletion request (kind 5) is kept after it was accepted. A topic's "
               "deletion_days goes before it.",
    .min = 1,
    .max = 36'500,
    .live = true,
}};
inline constexpr Key<std::int64_t> kTombstoneDays{{
    .name = "retention.tombstone_days",
    .fallback = "180",
    .meaning = "Days that the node knows after a deletion request which events it refuses by it. At "
               "least every period of regular events. A topic's tombstone_days goes before it.",
    .min = 1,
    .max = 36'500,
    .live = true,
}};
inline constexpr Key<std::int64_t> kDedupeDays{{
    .name = "retention.dedupe_days",
    .fallback = "180",
    .meaning = "Days that the id of an event is known after it was seen last, so that a purged event "
               "is no news. At least every period of regular events. A topic's dedupe_days goes "
               "before it.",
    .min = 1,
    .max = 36'500,
    .live = true,
}};

inline constexpr Key<std::int64_t> kCapacityBytes{{
    .name = "capacity.max_bytes",
    .type = KeyType::size,
    .fallback = "0",
    .meaning =
        "How large the database may become, about. From 85 % of it backfill is refused, from 92.5 % events "
        "of "
        "low-priority topics, and when all of it is in use the oldest weeks go until 95 % is. Kept events, "
        "known ids and tombstones count, but no purge frees them: with them alone events are refused. 0: no "
        "limit.",
    .min = 0,
    .max = 1LL << 50,
    .live = true,
}};
inline constexpr Key<std::int64_t> kCapacityEvents{{
    .name = "capacity.max_events",
    .fallback = "0",
    .meaning = "The same as a number of stored events. 0: no limit.",
    .min = 0,
    .max = 1'000'000'000'000,
    .live = true,
}};
inline constexpr Key<std::int64_t> kCapacityKeepDays{{
    .name = "capacity.keep_days",
    .fallback = "7",
    .meaning = "No event that was accepted in so many days is purged for want of capacity; where nothing "
               "older is left, "
               "events are refused (`restricted: capacity`).",
    .min = 1,
    .max = 36'500,
    .live = true,
}};

}  // namespace todoke::relay::keys

namespace todoke::relay {

std::span<const KeySpec* const> config_keys();
Expected<void> check_config(const Config& config);

bool search_is_on(const Config& config);

}  // namespace todoke::relay
