// Links stored events to a topic that they already name and that the node did not take when they came: from
// then on they are found by it, and the log says so, so that consumers get them. A background job does it,
// the newest events first (app/topic_link.cpp).
//
// A piece is one transaction under the log's lock, of kLinkedAtOnce events at most. Repeated, it links
// nothing twice. Nothing is linked while the topic is disabled, where its ingest_policy wants no backfill,
// and beyond its max_events and max_bytes. Linked events are not delivered live, and `seq_after` finds them
// by the seq that they had before.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "pg/connection.hpp"

namespace todoke::relay {

struct LinkPlace {
  // The last event that was looked at; those after it are older.
  std::int64_t created_at = INT64_MAX;
  std::string event_id{};
  std::int64_t linked = 0;  // so far
  bool is_end = false;
};

inline constexpr std::int32_t kLinkedAtOnce = 200;

// The next piece after `place`. Throws what the connection throws; nothing of the piece was done then, except
// that after CommitOutcomeUnknown it may have been, and can be repeated.
Task<LinkPlace> link_some(pg::Connection& connection, std::string topic, LinkPlace place, Deadline deadline);

// All of it is linked: requests for the topic are active.
Task<void> mark_ingested(pg::Connection& connection, std::string topic, Deadline deadline);

}  // namespace todoke::relay
