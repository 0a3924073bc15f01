// Decides what of the log is delivered next, so that everything goes out in the order of seq and once. Pure:
// it reads and sends nothing; the hub does what it says.
//
// Rows come in two ways. Those that this relay's writer has appended come as a batch, right after the commit.
// Those of other relays are fetched, when NOTIFY, a poll or a gap before a batch says that there may be some.
//
//                     a batch right behind the head
//                   ┌─ apply ─┐
//                   │         ▼
//    ┌──────────▶  up to date  ◀───────────────┐
//    │               │       │                 │
//    │ no row        │ told, │ a batch beyond  │ no row up
//    │ is left       │ poll  │ the head        │ to it is left
//    │               ▼       ▼                 │
//    └───────── fetch all   fetch up to it ────┘
//                    ▲       │
//                    └───────┘
//                     let go: too many batches wait, or the database was
//                     restored; their rows are fetched like those of others
//
// While rows are being fetched batches wait. Seqs of transactions that were rolled back are missing for ever:
// `until` of a fetch is reached when no row up to it is left.
//
// Bounded: `batches_max` batches wait.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "base/hash_table.hpp"
#include "relay/incoming.hpp"
#include "relay/store.hpp"

namespace todoke::relay {

class LogFollower {
 public:
  struct Batch {
    Appended log;
    std::vector<LiveEventPtr> stored;
  };
  // Rows after the head, up to `until`.
  struct Fetch {
    nostr::Seq until;
    std::uint64_t restores;
  };
  static constexpr auto kNoEnd = nostr::Seq{std::numeric_limits<std::int64_t>::max()};

  explicit LogFollower(std::size_t batches_max) : batches_max_(batches_max) {}

  // What has happened.
  //
  // Where the log stands when following begins.
  void begin_at(nostr::Seq head) { head_ = std::max(head_, head); }
  // The writer has committed. Gives how many batches were let go, all that waited or none.
  std::size_t appended(Batch batch);
  // Others have written up to `seq`, or may have. False: that has been delivered.
  bool told(nostr::Seq seq = kNoEnd);
  // The log was restored: what was told of it and was not delivered may be gone.
  void restored();

  // What to do next: apply a batch, then call applied(); where there is none, fetch rows, show each to
  // pass() and call fetched(), or fetch_failed(). Neither: wait.
  [[nodiscard]] std::optional<Batch> next_batch();
  void applied(const Batch& batch);
  [[nodiscard]] std::optional<Fetch> next_fetch();
  // Whether the rows that came for the fetch are of the log as it is.
  [[nodiscard]] bool is_current(const Fetch& fetch) const { return fetch.restores == restores_; }
  // Moves the head on to the row. False: it has been delivered.
  bool pass(nostr::Seq seq);
  void fetched(const Fetch& fetch, bool is_more_left);
  void fetch_failed();

  // The last row that was delivered.
  [[nodiscard]] nostr::Seq head() const { return head_; }
  // The last row that anybody here knows to be committed.
  [[nodiscard]] nostr::Seq newest() const;
  // Whether every event that got its OK has been delivered.
  [[nodiscard]] bool is_even() const { return batches_.empty() && !let_go_; }
  // Whether a batch that waits may end the effect of an event that is delivered now.
  [[nodiscard]] bool may_be_gone_later(const nostr::EventId& id) const;
  // The last row of this relay's writer that the other relays have not been told of.
  [[nodiscard]] std::optional<nostr::Seq> untold() const;
  void others_told(nostr::Seq seq) { others_told_ = seq; }

 private:
  void let_go();
  void forget_gone(const Batch& batch);

  const std::size_t batches_max_;
  nostr::Seq head_;
  std::deque<Batch> batches_;
  // How often the batches that wait name an event as gone: a batch may hold thousands, and every event that
  // goes out asks.
  HashMap<nostr::EventId, std::uint32_t> gone_later_;
  bool told_ = true;       // others may have written
  bool let_go_ = false;    // rows of batches that were let go have not been fetched yet
  bool fetching_ = false;  // batches wait
  std::uint64_t restores_ = 0;
  nostr::Seq own_head_;     // the last row of this relay's writer
  nostr::Seq others_told_;  // how far the other relays were told of them
};

}  // namespace todoke::relay
