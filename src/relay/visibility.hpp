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

// What is over, nobody sees. What is not public, authenticated connections see. Direct messages and gift
// wraps are seen by their author and recipients.
bool is_visible(const LiveEvent& live, const Viewer& viewer, std::chrono::sys_seconds now);

}  // namespace todoke::relay
