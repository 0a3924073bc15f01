// What the node says of itself, as events that are not signed yet, and which of them have to be signed now.
// Pure.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "bootstrap/node_keys.hpp"
#include "nostr/event.hpp"
#include "nostr/kinds.hpp"
#include "nostr/signature.hpp"

namespace todoke::bootstrap {

struct NodeFacts {
  std::string name;
  std::vector<std::string> roles;
  std::string relay_url;
  std::string api_url;
  std::string policy_url;
  std::string jurisdiction;
  std::string contact;
  std::chrono::seconds lifetime = std::chrono::hours(24 * 7);
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

// The descriptor, and a topic service for each topic and each role that does something for topics. Without
// `exp` and created_at. The descriptor is of the topic kukuri:global, a service of its own topic, so that
// other nodes take them and gossip passes them on.
std::vector<nostr::EventDraft> documents(const NodeFacts& facts, const NodeKeys& keys,
                                         const std::vector<std::string>& topics);

struct Changes {
  std::vector<nostr::EventDraft> to_sign;  // whole
  std::vector<nostr::Event> to_withdraw;   // in effect, and wanted no more
};

// What is to be done so that `wanted` is in effect: what says something else now, and what has half of its
// life behind it. `in_effect` are the node's own events of these kinds.
Changes changes(const std::vector<nostr::EventDraft>& wanted, const std::vector<nostr::Event>& in_effect,
                std::chrono::seconds lifetime, std::chrono::sys_seconds now);

// A deletion request for these, all of one author; with their topics, so that it goes where they went.
nostr::EventDraft withdrawal(const std::vector<nostr::Event>& events, std::chrono::sys_seconds now);

}  // namespace todoke::bootstrap
