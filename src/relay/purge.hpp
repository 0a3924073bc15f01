// Steps by which stored events are purged: forgotten, without a row in the log. Retention (retention.hpp)
// puts them together; capacity uses some of them.
//
// How to call them: from one process at a time, which holds the purge lock on the connection
// (with_purge_lock) for some steps and then lets others have it; each step is a short transaction, or
// several, so a caller pauses between steps to leave the database to others. A step that throws has changed
// nothing, or as much as it would have told; it can be repeated. They block ingest for at most `kPurgeRows`
// moved rows, or for the tenths of a second in which a week waits for its locks. Relays of this database hear
// of what was purged (channel_purged) and forget what they keep in memory.
//
// Counters: cn_relay.topic_usage is right after every step.
#pragma once

#include <chrono>
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

// Runs `work` with the purge lock of this database; waits for it so long at most, and is next then. False:
// another process has it, and nothing was done. Closes the connection when `work` throws, because the lock
// belongs to the session.
Task<bool> with_purge_lock(pg::Connection& connection, std::chrono::milliseconds wait,
                           std::function<Task<void>(pg::Connection&)> work, Deadline deadline);

// How far `at`, the clock of this machine, is ahead of the database's, which is the one that events are
// stored by.
Task<std::chrono::seconds> clock_difference(pg::Connection& connection, SystemTime at, Deadline deadline);
// With more than that one of the two is wrong, and nobody knows which events are old: nothing may be purged
// by age.
inline constexpr std::chrono::minutes kClockDifferenceMax(2);
[[nodiscard]] inline bool clocks_agree(std::chrono::seconds difference) {
  return difference <= kClockDifferenceMax && -difference <= kClockDifferenceMax;
}

struct OldWeek {
  SystemTime begins;
  std::int64_t bytes = 0;  // on disk, with indexes
};
// The weekly partitions whose last event was accepted `keep_days` before `at` or earlier, the oldest first.
Task<std::vector<OldWeek>> old_weeks(pg::Connection& connection, SystemTime at, std::int32_t keep_days,
                                     Deadline deadline);

// Moves up to kPurgeRows events of the week to where they stay when it goes: those in effect that a topic
// keeps longer than `regular_days`, and of which that period is not over at `at`. Gives how many; 0: none is
// left. Under the log's lock.
Task<std::int64_t> keep_some_of_week(pg::Connection& connection, SystemTime week, SystemTime at,
                                     std::int32_t regular_days, Deadline deadline);

// Takes the partitions of a week out of their tables, of which nothing has to be kept any more; gives how
// many events that were. Nothing: an open transaction that has read events is in the way; try again later.
Task<std::optional<std::int64_t>> detach_week(pg::Connection& connection, SystemTime week, Deadline deadline);

// Drops what was taken out, also by a process that was killed; gives the bytes. Nothing: somebody still reads
// it; try again later.
Task<std::optional<std::int64_t>> drop_detached(pg::Connection& connection, Deadline deadline);

// Drops the oldest week that was over `keep_days` before `at`: the purge of capacity. Events of topics that
// have a longer period than the node's `regular_days` are moved first, `steps_max` times kPurgeRows of them
// at most; a shorter one protects nothing. `pause` is called between steps. Neither dropped, under way nor
// held: there is no such week.
struct OldestWeek {
  bool dropped = false;
  bool under_way = false;  // some were moved; go on
  bool held = false;       // a transaction is in the way
  Purged purged;
  std::int64_t moved = 0;
};
Task<OldestWeek> purge_oldest_week(pg::Connection& connection, SystemTime at, std::int32_t keep_days,
                                   std::int32_t regular_days, int steps_max,
                                   std::function<Task<void>()> pause, Deadline deadline);

// Where the walks through one topic go on.
struct TopicPlace {
  SystemTime lost_at{};  // of the last event looked at that lost its effect
  std::string lost_id;
  std::int64_t seq = 0;  // of the last link looked at
};
struct TopicPage {
  bool is_last = false;
  Purged purged;
};
// Looks at the next thousand of all events that lost their effect, in the order in which they lost it, and
// purges those of the topic, up to `events_max`, whatever other topics they have: nobody is shown them any
// more. Deletion requests stay.
Task<TopicPage> purge_lost_of_topic(pg::Connection& connection, std::string topic, TopicPlace& place,
                                    std::int64_t events_max, Deadline deadline);
// Looks at the next kPurgeRows of the topic's events in effect that were accepted before `before`, and purges
// the oldest of them, up to `events_max`. It leaves out what another topic has as well, deletion requests,
// and versions: a topic that is too large affects itself alone. So a page may purge nothing and not be the
// last.
Task<TopicPage> purge_oldest_of_topic(pg::Connection& connection, std::string topic, SystemTime before,
                                      TopicPlace& place, std::int64_t events_max, Deadline deadline);

// What topic_usage says of a topic; of the whole node with an empty name.
Task<Purged> usage_of_topic(pg::Connection& connection, std::string topic, Deadline deadline);

// Makes topic_usage anew by counting every stored event; ingest waits meanwhile. Gives how many of its rows
// were wrong. For doctors, and after somebody has changed events by hand.
Task<std::int64_t> recount_usage(pg::Connection& connection, Deadline deadline);

}  // namespace todoke::relay
