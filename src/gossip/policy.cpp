#include "gossip/policy.hpp"

#include <algorithm>

#include "nostr/kinds.hpp"

namespace todoke::gossip {
namespace {

bool names_topic(const nostr::Event& event, std::string_view topic) {
  const auto tags = event.tags();
  return std::any_of(tags.begin(), tags.end(),
                     [&](const auto& tag) { return tag.name() == "t" && tag.value() == topic; });
}

// NIP-70: only its author may bring it.
bool is_protected(const nostr::Event& event) {
  const auto tags = event.tags();
  return std::any_of(tags.begin(), tags.end(), [](const auto& tag) { return tag.name() == "-"; });
}

}  // namespace

std::vector<std::string> destinations(const outbox::TakenEvent& taken) {
  std::vector<std::string> topics;
  const auto kind = taken.event->kind();
  if (taken.non_public || is_protected(*taken.event)) return topics;
  if (nostr::is_p2p_only(kind) || nostr::is_private(kind)) return topics;
  for (const auto& topic : taken.topics) {
    if (topic != taken.came_by && names_topic(*taken.event, topic)) topics.push_back(topic);
  }
  return topics;
}

}  // namespace todoke::gossip
