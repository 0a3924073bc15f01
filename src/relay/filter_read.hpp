// Inside this room: reads the stored events that one filter matches, page by page, through one connection.
//
// A page is a run of candidates by an index (read_plan.hpp), newest first, after a cursor. Their events are
// fetched piece by piece and matched against the whole filter.
//
// Bounded: rows of a page, and a piece of 1 MiB of events that is being looked at.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nostr/filter.hpp"
#include "nostr/negentropy.hpp"
#include "pg/connection.hpp"
#include "relay/incoming.hpp"
#include "relay/read_plan.hpp"
#include "relay/reader.hpp"
#include "relay/stored_page.hpp"
#include "relay/visibility.hpp"

namespace todoke::relay {

using Hexes = std::vector<std::string>;
using KindNumbers = std::vector<std::int32_t>;

// Values of a filter as parameters of a statement; nothing where the filter does not name any.
std::optional<KindNumbers> kinds_of(const nostr::Filter& filter);
std::optional<Hexes> authors_of(const nostr::Filter& filter);

template <class T>
Hexes hexes_of(const std::vector<T>& list) {
  Hexes hexes;
  for (const auto& value : list) hexes.push_back(value.hex());
  return hexes;
}

template <class T>
Hexes hexes_of(const nostr::SortedSet<T>& set) {
  return hexes_of(set.values());
}

// What all filters of a REQ or COUNT share.
struct ReadScope {
  pg::Connection& connection;
  Viewer viewer;
  std::chrono::sys_seconds now;
  nostr::Seq head;
  Deadline deadline;
  const ReadInterrupt& interrupt;
};

// Gets the events that pass, in the order of the read. False: that is enough.
using TakeEvent = std::function<bool(LiveEventPtr)>;

// A place among the candidates: pages go on after it.
struct PageCursor {
  std::int64_t created_at;
  std::string id;
};

// The events of a page, by what finds them: `times` and `lifetimes` name their partitions and may be missing.
struct EventKeys {
  Hexes ids;
  std::vector<SystemTime> times = {};
  Hexes lifetimes = {};

  void add(const pg::Row& row);
};

class FilterRead {
 public:
  static constexpr std::size_t kPageRowsMax = 1'000;

  // `scope` and `filter` outlive it.
  FilterRead(const ReadScope& scope, const nostr::Filter& filter, ReadPlan plan);

  // Fills the page with the newest ones, up to `limit` of them.
  Task<void> newest(std::size_t limit, StoredPage& page);
  // With those of `ids` that pass, in their order.
  Task<void> ranked(Hexes ids, std::size_t limit, StoredPage& page);
  // With those after `after` in the order of the log.
  Task<void> by_seq(nostr::Seq after, std::size_t limit, StoredPage& page);

  // Gives the events that pass of the next page of candidates, newest first and none older than `oldest`.
  // False: it was the last, or enough.
  Task<bool> next_page(std::size_t rows, std::int64_t oldest, const TakeEvent& take);
  // The same for a set, of which only times and ids are wanted: where the rows of the index say all that the
  // filter and the viewer ask, no event is fetched but the private ones.
  Task<bool> next_set_page(std::vector<nostr::NegItem>& found);

  // A read that ends here and goes on later.
  void resume(WayChoice choice, PageCursor cursor);
  [[nodiscard]] const WayChoice& choice() const { return choice_; }
  [[nodiscard]] const PageCursor& cursor() const { return cursor_; }

 private:
  void pass(const pg::Result& page);
  [[nodiscard]] bool rows_decide() const;
  [[nodiscard]] bool passes_as_row(const pg::Row& row) const;
  [[nodiscard]] bool is_for_parties(const pg::Row& row) const;
  Task<bool> take_page(const pg::Result& rows, const TakeEvent& take);
  Task<bool> take_events(const EventKeys& keys, const TakeEvent& take);
  [[nodiscard]] bool passes(const LiveEvent& live) const;
  [[nodiscard]] bool is_linked(const LiveEvent& live) const;

  const ReadScope& scope_;
  const nostr::Filter& filter_;
  ReadPlan plan_;
  WayChoice choice_;
  PageCursor cursor_;
};

}  // namespace todoke::relay
