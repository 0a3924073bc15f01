// What a relay sends to its clients, as the operator's tools read it: EVENT, OK, EOSE, CLOSED, NOTICE, COUNT,
// AUTH, NEG-MSG, NEG-ERR. Pure.
//
// Lenient where another relay may differ: elements beyond the known ones are left aside, and a message of an
// unknown verb is `other`. Strict JSON all the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace todoke::nostr {

struct RelayMessage {
  enum class Verb : std::uint8_t { event, ok, eose, closed, notice, count, auth, neg_msg, neg_err, other };

  Verb verb = Verb::other;
  std::string subject;    // the subscription, or the event's id of OK
  bool accepted = false;  // of OK
  std::string
      text;  // what the relay says with OK, CLOSED, NOTICE and NEG-ERR; the challenge of AUTH; NEG-MSG's hex
  std::string json;  // the event, COUNT's object, or EOSE's hints where there are some, as it was sent
};

// Nothing for a text that is no JSON array, or whose verb lacks an element that it needs.
std::optional<RelayMessage> parse_relay_message(std::string_view text);

}  // namespace todoke::nostr
