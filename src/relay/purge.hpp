// Steps by which stored events are purged: forgotten, without a row in the log. Retention (retention.hpp) puts
// them together; capacity uses some of them.
//
// How to call them: from one process at a time, which holds the purge lock on the connection (with_purge_lock);
// each step is a short transaction, or several, so a caller pauses between steps to leave the database to
// others. A step that throws has changed nothing, or as much as it would have told; it can be repeated. They
// block ingest for at most `kPurgeRows` moved rows, or for the tenths of a second in which a week waits for its
// locks. Relays of this database hear of what was purged (channel_purged) and forget what they keep in memory.
//
// Counters: cn_relay.topic_usage is right after every step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "pg/connection.hpp"
#include "pg/pool.hpp"

namespace todoke::relay {

// Rows of one step. Each takes some 0.1 ms, so that a step holds its locks for some 20 ms.
inline constexpr std::int64_t kPurgeRows = 200;

// In days. What a topic's ingest_policy says goes before these.
struct RetentionPeriods {
  std::int32_t regular = 30;
  std::int32_t superseded = 7;
  std::int32_t deletion = 180;
  std::int32_t tombstone = 180;
  std::int32_t dedupe = 180;
  friend bool operator==(const RetentionPeriods&, const RetentionPeriods&) = default;
};

struct Purged {
  std::int64_t events = 0;
  std::int64_t bytes = 0;  // as topic_usage counts them
  Purged& operator+=(const Purged& more) {
    events += more.events;
    bytes += more.bytes;
    return *this;
  }
};

// Runs `work` with the purge lock of this database. False: another process has it, and nothing was done. Closes
// the connection when `work` throws, because the lock belongs to the session.
Task<bool> with_purge_lock(pg::Connection& connection, std::function<Task<void>(pg::Connection&)> work,
                           Deadline deadline);

struct OldWeek {
  SystemTime begins;
  std::int64_t bytes = 0;  // on disk, with indexes
};
// The weekly partitions whose last event was accepted `keep_days` before `at` or earlier, the oldest first.
Task<std::vector<OldWeek>> old_weeks(pg::Connection& connection, SystemTime at, std::int32_t keep_days,
                                     Deadline deadline);

// Moves up to kPurgeRows events of the week to where they stay when it goes: those in effect of which a topic's
// own retention_days is not over at `at`; for other topics `regular_days` counts. Gives how many; 0: none is
// left. Under the log's lock.
Task<std::int64_t> keep_some_of_week(pg::Connection& connection, SystemTime week, SystemTime at,
                                     std::int32_t regular_days, Deadline deadline);

// Drops the partitions of a week, of which nothing has to be kept any more. Nothing: an open transaction that
// has read events is in the way; try again later.
Task<std::optional<Purged>> drop_week(pg::Connection& connection, SystemTime week, Deadline deadline);

// Drops the oldest week that was over `keep_days` before `at`, as retention with a regular period of `keep_days`
// would: events of topics that have a longer period of their own are moved first. The purge of capacity.
// `pause` is called between steps. `dropped` false: there is no such week, or (held) a transaction is in the way.
struct OldestWeek {
  bool dropped = false;
  bool held = false;
  Purged purged;
  std::int64_t moved = 0;
};
Task<OldestWeek> purge_oldest_week(pg::Connection& connection, SystemTime at, std::int32_t keep_days,
                                   std::function<Task<void>()> pause, Deadline deadline);

// Where a walk through a topic goes on.
struct TopicPage {
  std::int64_t last_seq = 0;
  bool is_last = false;
  Purged purged;
};
// Looks at the next kPurgeRows of the topic's events after `after_seq` (0: from the oldest) that were accepted before
// `before`, and purges the oldest of them, up to `events_max`. It leaves out what another topic has as well, deletion requests, and versions in effect: a
// topic that is too large affects itself alone. So a page may purge nothing and not be the last.
Task<TopicPage> purge_oldest_of_topic(pg::Connection& connection, std::string topic, SystemTime before,
                                      std::int64_t after_seq, std::int64_t events_max, Deadline deadline);

// What topic_usage says of a topic; of the whole node with an empty name.
Task<Purged> usage_of_topic(pg::Connection& connection, std::string topic, Deadline deadline);

// Makes topic_usage anew by counting every stored event; ingest waits meanwhile. Gives how many of its rows were
// wrong. For doctors, and after somebody has changed events by hand.
Task<std::int64_t> recount_usage(pg::Connection& connection, Deadline deadline);

}  // namespace todoke::relay
