// What the relay sends. Each function gives one message as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace todoke::nostr {

class SubId;

// `event_json` is Event::json(), made once for all subscribers; this only puts it behind the subscription's
// id.
std::string event_message(const SubId& sub, std::string_view event_json);

// `event_id` is the id as it was sent. `text` is empty or one of texts.hpp.
std::string ok_message(std::string_view event_id, bool accepted, std::string_view text);

// NIP-67: `["EOSE", sub, [hint, ...]]`; without hints the array is left out.
std::string eose_message(const SubId& sub, std::span<const std::string> hints);

// `sub` is the id as it was sent, valid or not.
std::string closed_message(std::string_view sub, std::string_view text);
std::string notice_message(std::string_view text);
std::string auth_message(std::string_view challenge);
std::string count_message(const SubId& sub, std::uint64_t count);

// NIP-77. `sub` as for closed_message; `message` of negentropy.hpp goes as hex.
std::string neg_err_message(std::string_view sub, std::string_view text);
std::string neg_msg_message(const SubId& sub, std::string_view message);

}  // namespace todoke::nostr
