// The recipients of an event: the keys in its `p` tags. Only they and the author are shown direct messages
// and gift wraps (is_private in kinds.hpp).
#pragma once

#include <span>
#include <vector>

#include "nostr/event.hpp"
#include "nostr/filter.hpp"

namespace todoke::nostr {

// Each once, in ascending order. A `p` tag whose value is no key names nobody.
std::vector<Pubkey> recipients_of(const Event& event);

// Whether one of these keys is the event's author or a recipient. Allocates nothing.
bool is_party(const Event& event, std::span<const Pubkey> keys);

// Whether these filters ask for private kinds by their numbers, at all or for nothing else. A filter without
// `kinds` does not name them.
bool names_private_kinds(std::span<const Filter> filters);
bool names_only_private_kinds(std::span<const Filter> filters);

}  // namespace todoke::nostr
