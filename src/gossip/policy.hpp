// What goes out by gossip, and where. Pure.
#pragma once

#include <string>
#include <vector>

#include "outbox/gossip_port.hpp"

namespace todoke::gossip {

// The topics whose gossip gets an event, of those it was taken for:
//
//   - those that it names in a `t` tag, for receivers look there;
//   - never the one that brought it: who is there has it;
//   - none for the kinds that travel between clients only, for direct messages and gift wraps, for what is
//     not public, and for what only its author may bring (NIP-70).
std::vector<std::string> destinations(const outbox::TakenEvent& taken);

}  // namespace todoke::gossip
