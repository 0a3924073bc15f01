// What a relay sends to its clients, as the operator's tools read it: EVENT, OK, EOSE, CLOSED, NOTICE, COUNT, AUTH. Pure.
//
// Lenient where another relay may differ: elements beyond the known ones are left aside, and a message of an unknown
// verb is `other`. Strict JSON all the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace todoke::nostr {

struct RelayMessage {
  enum class Verb : std::uint8_t { event, ok, eose, closed, notice, count, auth, other };

  Verb verb = Verb::other;
  std::string subject;    // the subscription, or the event's id of OK
  bool accepted = false;  // of OK
  std::string text;       // what the relay says with OK, CLOSED and NOTICE; the challenge of AUTH
  std::string json;       // the event, or COUNT's object, as it was sent
};

// Nothing for a text that is no JSON array, or whose verb lacks an element that it needs.
std::optional<RelayMessage> parse_relay_message(std::string_view text);

}  // namespace todoke::nostr
