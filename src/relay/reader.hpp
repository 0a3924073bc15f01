// Stored events for REQ and COUNT.
//
// The head of the log is read first; what the log named later is left to live delivery. So a result holds
// exactly what was in effect with a seq up to `head`, less what lost its effect while it was read.
//
// Bounded: events of a result, rows of a page, time (the deadline), and memory while it reads: the JSON of
// the result (StoredPage), whatever the number of filters, and a piece of 1 MiB that is being looked at. A
// COUNT holds a page of ids for each filter. A set (SetRead) grows to what it may hold, 40 bytes an event, by
// reads of their own of 10,000 rows.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/shared_value.hpp"
#include "nostr/filter.hpp"
#include "nostr/negentropy.hpp"
#include "nostr/rules.hpp"
#include "outbox/search_port.hpp"
#include "pg/pool.hpp"
#include "relay/incoming.hpp"
#include "relay/read_plan.hpp"
#include "relay/stored_page.hpp"
#include "relay/visibility.hpp"

namespace todoke::relay {

struct ReadLimits {
  std::size_t limit_default = 500;  // of a filter without one
  std::size_t limit_max = 5'000;    // a larger one counts as this
  std::size_t bytes_max = 2 * 1024 * 1024;
};

struct ReadResult {
  std::vector<LiveEventPtr> events;  // in the order to be sent, each once
  bool more = false;                 // a limit has cut it
  nostr::Seq head;
  nostr::Seq cursor;  // where to go on: the head, or the last event of a result by seq that was cut
};

// Ends a read that nobody waits for any more: the statement under way is cancelled on the server, and the
// read throws what a deadline throws, or ends anyhow.
class ReadInterrupt {
 public:
  explicit ReadInterrupt(Executor executor) : executor_(std::move(executor)) {}

  // From anywhere.
  static void end(const std::shared_ptr<ReadInterrupt>& read);
  [[nodiscard]] bool has_ended() const { return ended_; }
  // The connection that works for the read, null when none does. On the executor of the read. Throws
  // pg::DeadlineExceeded when the read has ended already.
  void use(pg::Connection* connection);

 private:
  const Executor executor_;
  std::atomic<bool> ended_ = false;
  pg::Connection* connection_ = nullptr;
};
using ReadInterruptPtr = std::shared_ptr<ReadInterrupt>;

// The ids of all events that a filter matches and its viewer may see, without the limits of a REQ; a limit
// that the filter itself has counts. Read in pieces (Reader::read_piece): what is stored meanwhile may be
// among them or not.
class SetRead {
 public:
  SetRead(nostr::Filter filter, Viewer viewer, std::size_t events_max)
      : filter_(std::move(filter)), viewer_(std::move(viewer)), events_max_(events_max) {}

  [[nodiscard]] const nostr::Filter& filter() const { return filter_; }
  // Everything was read, or too much.
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool is_too_large() const { return items_.size() > events_max_; }
  [[nodiscard]] std::size_t bytes() const { return items_.capacity() * sizeof(nostr::NegItem); }
  [[nodiscard]] nostr::NegSet take() { return nostr::NegSet(std::move(items_)); }

 private:
  friend class Reader;
  // Where the next piece begins.
  struct Place {
    WayChoice choice;
    std::int64_t created_at;
    std::string id;
  };

  const nostr::Filter filter_;
  const Viewer viewer_;
  const std::size_t events_max_;
  std::optional<Place> place_;  // none before the first piece
  std::vector<nostr::NegItem> items_;
  bool ended_ = false;
};

class Reader {
 public:
  // `search` may be null: then no filter may ask for it.
  Reader(pg::Pool& pool, const Clock& clock, nostr::TopicPolicy policy, ReadLimits limits,
         outbox::SearchPort* search)
      : pool_(pool),
        clock_(clock),
        policy_(policy),
        limits_(std::make_shared<const ReadLimits>(limits)),
        search_(search) {}

  // Throws what the pool and the connection throw. A filter with `search` gives its events in the order of
  // their rank; then no filter of the REQ is sorted with the others. A filter with a limit of 0 is not read;
  // the result says `more` for it.
  Task<ReadResult> read(const std::vector<nostr::Filter>& filters, Viewer viewer, Deadline deadline,
                        ReadInterruptPtr interrupt);
  Task<std::uint64_t> count(const std::vector<nostr::Filter>& filters, Viewer viewer, Deadline deadline,
                            ReadInterruptPtr interrupt);
  // The next piece of a set, by one page of an index. Nobody else may look at `set` meanwhile.
  Task<void> read_piece(SetRead& set, Deadline deadline, ReadInterruptPtr interrupt);
  // The newest events in effect that a filter asks for, whoever may see them.
  Task<ReadResult> recent(const nostr::Filter& filter, std::size_t events_max, std::size_t bytes_max,
                          Deadline deadline);

  // Those of the events that are in effect and that everybody may see, in no order. All of them are in memory
  // at once: the caller bounds the ids. What is no id finds nothing.
  Task<std::vector<LiveEventPtr>> public_events(const std::vector<std::string>& ids, Deadline deadline);

  // From anywhere; a read that is under way may go by either.
  [[nodiscard]] ReadLimits limits() const { return *limits_.load(); }
  void set_limits(const ReadLimits& limits) { limits_.store(std::make_shared<const ReadLimits>(limits)); }
  [[nodiscard]] std::size_t limit_of(const nostr::Filter& filter) const;

 private:
  Task<outbox::SearchResult> find_ranked(const nostr::Filter& filter, Deadline deadline,
                                         ReadInterruptPtr interrupt);

  pg::Pool& pool_;
  const Clock& clock_;
  nostr::TopicPolicy policy_;
  SharedValue<ReadLimits> limits_;
  outbox::SearchPort* search_;
};

// Indexes that only a plain relay needs (policy open): made when it starts, once.
Task<void> ensure_open_indexes(pg::Pool& pool, Deadline deadline);

}  // namespace todoke::relay
