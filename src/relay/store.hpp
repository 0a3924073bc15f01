// What a batch of events does in the database: one transaction under the log's lock, sent in one flush.
//
// Cost: one round trip and one commit for a batch of any size.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nostr/ids.hpp"
#include "pg/connection.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay {

// An event that has lost its effect.
struct Gone {
  nostr::EventId id;
  std::int64_t created_at;
};

// What a transaction has appended to the log.
struct Appended {
  nostr::Seq head_before;  // the last seq given out before it
  nostr::Seq head;         // and after it
  nostr::Seq since;        // other than before: the database was restored or promoted in between
  bool moved = false;      // it was this transaction that noticed and moved the log on to `since`
  std::vector<Gone> gone;
  std::chrono::duration<double> lock_waited{};
  SteadyTime committed_at{};
};

struct StoredBatch {
  std::vector<Outcome> outcomes;  // one for each event
  std::vector<nostr::Seq> seqs;   // one for each event; 0 where it was not stored
  Appended log;
};

// Settings for the connection that runs these: every lookup by index whatever the tables' statistics say,
// plans made once, and no wait for the log's lock without an end.
pg::ConnectOptions writer_options(pg::ConnectOptions options);

// Text of Postgres can't hold U+0000. An event with one is stored with U+FFFD in its place, and once more as
// JSON.
bool has_nul(const nostr::Event& event);
std::string without_nul(std::string_view text);

// In all of these `seen` is the highest seq that the caller knows of: a log that has fallen behind it was
// restored, and goes on beyond it.

// Of a transaction of one's own: what its statement lock_log said.
Appended read_lock(const pg::Result& locked);

// Appends nothing: tells where the log stands.
Task<Appended> check_log(pg::Connection& connection, nostr::Seq seen, Deadline deadline);

// `batch` comes from take_batch. Throws what Connection::run throws; nothing was stored then, except that
// after CommitOutcomeUnknown it may have been, and the same batch can be stored again: what is there counts
// as a duplicate.
Task<StoredBatch> store(pg::Connection& connection, std::span<const Incoming> batch, nostr::Seq seen,
                        Deadline deadline);

// Stored events: where their rows are.
struct EraseKeys {
  std::vector<std::string> ids;
  std::vector<SystemTime> times;  // ingested_at
  std::vector<std::string> lifetimes;
};

// Deletes them and all that hangs on them from the tables, with `delete` rows of that reason (dsar,
// operator). Those that are gone already are passed over.
Task<Appended> erase_events(pg::Connection& connection, const EraseKeys& keys, std::string reason,
                            nostr::Seq seen, Deadline deadline);

// At most `events_max` events whose time is over.
Task<Appended> sweep_expired(pg::Connection& connection, std::int32_t events_max, nostr::Seq seen,
                             Deadline deadline);

}  // namespace todoke::relay
