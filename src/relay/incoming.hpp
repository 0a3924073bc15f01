// An event on its way into the store, and what became of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "nostr/deletion.hpp"
#include "nostr/event.hpp"
#include "nostr/texts.hpp"

namespace todoke::relay {

enum class Source : std::uint8_t { ws, api, gossip, backfill, import, node };

std::string_view to_string(Source source);

// What the node's own keys have signed has a row in event_tags by this name, with the key: so it is found
// without a topic. No tag of a client has it.
inline constexpr char kOwnMark = '.';

using EventPtr = std::shared_ptr<const nostr::Event>;

enum class Outcome : std::uint8_t {
  stored,
  duplicate,       // it was there already
  newer_version,   // a newer version of its key is there
  deleted,         // its author has deleted it; a gift wrap: a recipient
  vanished,        // its author has asked to be forgotten; a gift wrap: a recipient
  author_blocked,  // by the operator
  event_blocked,
  topic_blocked,
  failed,        // the database did not take it
  storage_full,  // the database has no room
  full,          // all its topics are full
};

// What a client is told of an event with such an outcome.
nostr::Reason reason_of(Outcome outcome);

// What passed every check that needs no database. Made by `admit` (admission.hpp).
struct Incoming {
  EventPtr event;
  Source source = Source::ws;
  std::vector<std::string> topics;  // those it is accepted for, at least one, each once
  std::optional<std::int64_t> expires_at;
  bool non_public = false;
  bool kept = false;  // outlives the weekly partitions
  // For how long its id is known, and what it deletes, where its topics say so.
  std::optional<std::int32_t> dedupe_days;
  std::optional<std::int32_t> tombstone_days;
  std::string effective_key;             // empty for events that replace nothing
  nostr::DeletionTargets targets;        // of a deletion request
  std::vector<std::string> target_keys;  // the effective keys of targets.addresses
  bool held = false;   // the node takes nothing like it now: told that it is full, unless it is there already
  bool own = false;    // one of the node's own keys has signed it: it is found without a topic
  bool linked = true;  // false: its topic is for the log only, no query for a topic finds it
  std::vector<nostr::Pubkey> recipients;  // of a gift wrap: they may delete it
  std::size_t rows = 0;                   // rows_of(*event) (cost.hpp)
  std::string came_by;                    // the topic whose gossip brought it
  SteadyTime queued_at{};
  // Called once, on the writer's executor, after the commit.
  std::function<void(Outcome)> on_outcome;
};

// An event as it goes to subscribers and into caches.
struct LiveEvent {
  EventPtr event;
  nostr::Seq seq;  // 0: ephemeral
  std::optional<std::int64_t> expires_at;
  bool non_public = false;
  std::vector<std::string> topics;
};
using LiveEventPtr = std::shared_ptr<const LiveEvent>;

inline bool is_over(const LiveEvent& live, std::chrono::sys_seconds now) {
  return live.expires_at && *live.expires_at <= now.time_since_epoch().count();
}

}  // namespace todoke::relay
