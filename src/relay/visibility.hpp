// Who may see an event. The one rule for stored reads, live delivery and the memory of recent events; a COUNT
// that is answered by links alone says the same in SQL (count_by_topic and count_by_links in query.sql).
#pragma once

#include <chrono>
#include <vector>

#include "nostr/ids.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay {

struct Viewer {
  std::vector<nostr::Pubkey> keys = {};  // that the connection has proven (NIP-42); a handful
  // Not a client: the relay reads for its own memory, and each client's view is decided later.
  bool sees_all = false;

  [[nodiscard]] bool is_authenticated() const { return !keys.empty() || sees_all; }
};

// Nobody sees an event that is over. Only authenticated connections see events that are not public, and only
// their author and recipients see direct messages and gift wraps.
bool is_visible(const LiveEvent& live, const Viewer& viewer, std::chrono::sys_seconds now);

}  // namespace todoke::relay
