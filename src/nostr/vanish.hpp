// NIP-62: a person asks a relay to forget them.
#pragma once

#include <string>

#include "nostr/event.hpp"

namespace todoke::nostr {

// Whether a request (kind 62) is meant for the relay of this host: a `relay` tag says ALL_RELAYS, or is a URL
// of that host, as it is with AUTH. Without a host nothing but ALL_RELAYS is meant for it: what a client says
// it has connected to proves nothing, and the signed request for one relay could be shown to another.
bool is_to_vanish_from(const Event& request, const std::string& public_host);

}  // namespace todoke::nostr
