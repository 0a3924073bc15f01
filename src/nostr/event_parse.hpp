// One event from JSON text, strictly: the seven members of NIP-01, each once and of exactly its type. Members
// beyond them are ignored and not passed on. Lone surrogates and invalid UTF-8 are refused; U+0000 is a
// character like any other. Id and signature are not verified here.
//
// Cost: a hundredth of the signature's check for a message of 700 bytes, twice that if it has to be written
// anew.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "nostr/event.hpp"
#include "nostr/texts.hpp"

namespace todoke::nostr {

// What an operator may set lower or higher.
struct EventLimits {
  std::size_t event_bytes_max = 64 * 1024;  // of Event::json(): the same however the sender formats it
  std::size_t tags_max = 2'000;             // contact lists have a tag for each contact
  std::size_t tag_values_max = 100;         // strings in one tag
  std::size_t tags_bytes_max = 64 * 1024;   // of all strings in the tags
};

struct EventRefusal {
  Reason reason;
  // What the answer names: the event's id as it was sent, "" when there is none that could be named.
  std::string id;
};

// How much of a string that is no id at all is sent back in an answer. Enough to recognise it.
inline constexpr std::size_t kEchoBytesMax = 512;

// Nesting allowed in any JSON that comes in. What the protocol uses is 4 deep.
inline constexpr unsigned kJsonDepthMax = 32;

// The whole text must be one event: gossip, imports, HTTP bodies. A text that is no JSON is refused as
// message_not_json (or _too_deep, _too_long beyond kEventTextBytesMax).
tl::expected<Event, EventRefusal> parse_event(std::string_view text, const EventLimits& limits);

// Text around an event: an event's JSON may be written at up to six times its canonical size (all of it as
// \u00xx), but nobody sends that.
inline constexpr std::size_t kEventTextBytesMax = 1024 * 1024;

}  // namespace todoke::nostr
