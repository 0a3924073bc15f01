// Every event in effect, in the order in which they came: for an operator's export.
//
//   keys of all events ──one short transaction──▶ temporary file ──a page each──▶ events
//
// The keys are read at the speed of the disk and put into a temporary file, 48 bytes for an event; only then
// the events are read, in statements of their own. So a reader that is slow, for hours if it likes, holds up
// neither vacuum nor the retention of the tables. An event that loses its effect before its page comes is
// left out; what is stored after the keys were read comes with the next export after the cursor.
//
// Bounded: one page of events in memory, 20,000 keys while they are read.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.hpp"
#include "pg/connection.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay {

class Export {
 public:
  // Reads the keys of the events that came after `after`. Throws UserError when the temporary file can't be
  // written.
  static Task<Export> begin(pg::Connection& connection, nostr::Seq after);

  // The next events; may be fewer than a page holds, also none. ended() tells the end.
  Task<std::vector<LiveEventPtr>> next();
  [[nodiscard]] bool ended() const { return given_ == total_; }

  // Events to be read, and those that were.
  [[nodiscard]] std::uint64_t total() const { return total_; }
  [[nodiscard]] std::uint64_t given() const { return given_; }
  // Everything up to here was given: an export after it goes on.
  [[nodiscard]] nostr::Seq cursor() const { return cursor_; }

 private:
  Export(pg::Connection& connection, Fd keys, nostr::Seq after)
      : connection_(&connection), keys_(std::move(keys)), cursor_(after) {}
  Task<void> read_keys(nostr::Seq after);

  pg::Connection* connection_;
  Fd keys_;
  std::uint64_t total_ = 0;
  std::uint64_t given_ = 0;
  nostr::Seq cursor_;
};

}  // namespace todoke::relay
