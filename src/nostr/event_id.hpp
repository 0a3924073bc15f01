// The id of an event: SHA-256 of `[0,<pubkey>,<created_at>,<kind>,<tags>,<content>]` in canonical form.
#pragma once

#include <string>
#include <string_view>

#include "nostr/event.hpp"

namespace todoke::nostr {

// Hashes tags and content as they stand in the event's JSON, which is canonical: nothing is serialised again.
EventId compute_id(const Event& event);

inline bool has_right_id(const Event& event) {
  return compute_id(event) == event.id();
}

// The text that is hashed, made from the decoded values: the long way, which says what is right.
std::string canonical_text(const Event& event);
EventId hash_of(std::string_view canonical_text);

// NIP-13: the number of leading zero bits.
unsigned difficulty_of(const EventId& id);

}  // namespace todoke::nostr
