// NIP-09: what a deletion (kind 5) asks for.
#pragma once

#include <vector>

#include "nostr/event.hpp"
#include "nostr/kinds.hpp"

namespace todoke::nostr {

// Each once, in ascending order, so that all callers lock rows in one order.
struct DeletionTargets {
  std::vector<EventId> events;     // of any author: only the store knows whose they are
  std::vector<Address> addresses;  // the deletion's author's own
};

// By its `e` and `a` tags. Values that are none, and addresses of other authors, are passed over; `k` tags
// are hints and restrict nothing.
DeletionTargets deletion_targets(const Event& deletion);

}  // namespace todoke::nostr
