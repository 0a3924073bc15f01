// When an event ends (NIP-40), and who may see it (scope). Both are read from tags and have a form that can
// be wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <tl/expected.hpp>

#include "nostr/event.hpp"
#include "nostr/texts.hpp"

namespace todoke::nostr {

// Unix seconds from which on the event is not to be shown: the earliest `expiration`; for kinds 39000, 39001
// and 39006 `exp` counts as well. Nothing: never.
tl::expected<std::optional<std::int64_t>, Reason> expiry_of(const Event& event);

enum class Scope : std::uint8_t { non_public, open };  // all that the relay must tell apart

// public, friend_plus, friend or invite.
bool is_scope(std::string_view text);

// The scope by the `scope` tag, open without one. A non-public event must say its epoch, a positive integer.
// In a topic service (39001) the tag tells what the service covers; the event itself is open.
tl::expected<Scope, Reason> scope_of(const Event& event);

// Decimal digits with an optional minus and without leading zeros, all of `text`.
std::optional<std::int64_t> parse_decimal(std::string_view text);

}  // namespace todoke::nostr
