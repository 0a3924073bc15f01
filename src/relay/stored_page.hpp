// The stored events of a REQ while they are gathered: of several filters one list in the order to be sent,
// each event once. The tables (reader.hpp) and the memory of recent events (recent_cache.hpp) fill the same
// page.
//
// Bounded: `bytes_max` of JSON, but one event in any case. What does not fit is dropped from the page's end,
// so that the rest has no gap. Adding an event costs O(log n), at the end O(1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "nostr/ids.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay {

class StoredPage {
 public:
  enum class Order : std::uint8_t {
    newest_first,  // and of the same second the smallest id
    by_seq,        // the order of the log
    as_added,      // the first of equal ones counts
  };
  // Where an event stands in the order; the smallest comes first.
  using Place = std::pair<std::int64_t, nostr::EventId>;

  StoredPage(Order order, std::size_t bytes_max) : order_(order), bytes_max_(bytes_max) {}

  // False: the page ends before this event, and so before all that come later in its order.
  bool add(LiveEventPtr live);
  // A limit has left events out.
  void cut() { more_ = true; }
  // In the order by_seq: the same, and nothing after `last` has a place any more.
  void cut_after(nostr::Seq last);

  [[nodiscard]] bool more() const { return more_; }
  // In the order newest_first: what is older has no place.
  [[nodiscard]] std::int64_t oldest() const;
  [[nodiscard]] std::vector<LiveEventPtr> events() const;

 private:
  Place place_of(const LiveEvent& live) const;
  void drop_last();

  Order order_;
  std::size_t bytes_max_;
  std::map<Place, LiveEventPtr> events_;
  std::set<nostr::EventId> seen_;  // in the order as_added
  std::int64_t added_ = 0;         // likewise
  std::size_t bytes_ = 0;
  std::optional<Place> end_;  // from here on nothing has a place
  bool more_ = false;
};

// The place of an event in the order newest_first.
StoredPage::Place place_by_time(const nostr::Event& event);

}  // namespace todoke::relay
