// Events in bodies of the User API: an object, or JSON text of one.
#pragma once

#include <string_view>

#include "api/route.hpp"
#include "nostr/event.hpp"
#include "users/desk.hpp"

namespace todoke::users {

// An event as text, and room for its escapes.
inline constexpr std::size_t kEventBodyMax = 256 * 1024;

api::Schema event_schema(std::string_view meaning);
// An event that the node gives: as it was signed.
api::Schema given_event();

// Form alone: id and signature are not looked at.
Checked<nostr::Event> event_in(const Desk& desk, const api::Call& call, std::string_view member);

}  // namespace todoke::users
