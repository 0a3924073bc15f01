// A consumer of the log: a name and a function from rows to effects.
//
// Rows come in ascending order of seq, each at least once; with effects in the database exactly once, because
// effects and offset commit together. A failure that may pass is tried again with backoff; a row that keeps
// failing is buried (cn_relay.consumer_dead_letters) and the consumer goes on.
#pragma once

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/hash_table.hpp"
#include "outbox/log_row.hpp"
#include "pg/connection.hpp"
#include "pg/pool.hpp"

namespace todoke::outbox {

// What consumers need of an event.
struct LoggedEvent {
  std::string pubkey;
  std::int32_t kind = 0;
  std::int64_t created_at = 0;
  std::string tags_json;
  std::string content;
  std::vector<std::string> topics;
  bool non_public = false;
  bool has_nul = false;    // SQL can't read its tags, and content has U+FFFD in the place of U+0000
  bool effective = false;  // at the time of reading
};

// The events of the upserts among the rows, by id. Those that were purged are not among them.
Task<HashMap<std::string, LoggedEvent>> load_events(pg::Connection& connection, std::span<const LogRow> rows,
                                                    Deadline deadline);

// What one call of a consumer works on.
struct Work {
  pg::Connection& connection;  // inside the transaction that also moves the offset
  std::string_view consumer;
  std::span<const LogRow> rows;
  // The events of the upserts, by id, for consumers that want them. Rows whose event has been purged are not
  // among `rows`.
  const HashMap<std::string, LoggedEvent>& events;
  Deadline deadline;
};

// What apply() throws when nothing at all can be done at the moment, such as when the other end of effects
// outside the database is away. It is asked again, with backoff, for as long as it takes, and no row is
// buried for it.
struct NotNow : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Consumer {
 public:
  virtual ~Consumer() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Whether retention of the log waits for it.
  [[nodiscard]] virtual bool mandatory() const { return false; }
  [[nodiscard]] virtual bool wants_events() const { return true; }
  // Throws when it could not be done; nothing of it has happened then. With effects outside the database the
  // call itself must be safe to repeat. Whatever it waits for must end by work.deadline, as calls of the
  // database do: nothing else can end it.
  virtual Task<void> apply(Work work) = 0;

  // Makes what it derives anew, beside what is there, from the events that are in effect now; live
  // consumption goes on meanwhile. `progress` is called now and then, on a connection without a transaction,
  // with what is done and what there is to do.
  using Progress =
      std::function<Task<void>(pg::Connection& connection, std::int64_t done, std::int64_t total)>;
  virtual Task<void> rebuild(pg::Pool& pool, Progress progress) = 0;
  // Puts the new store in the place of the old one, in the transaction that also sets the offset.
  virtual Task<void> swap(pg::Connection& connection, Deadline deadline) = 0;
};

// For effects that would count twice: which of the rows have not had theirs yet. They have from now on; a
// replay takes that back for the rows that it repeats.
enum class Once {
  event,  // once for an event, however many rows name it
  row,    // once for (event, topic, op)
};
Task<std::vector<LogRow>> claim(Work work, Once once);

}  // namespace todoke::outbox
