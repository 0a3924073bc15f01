#include "nostr/deletion.hpp"

#include <algorithm>
#include <tuple>

namespace todoke::nostr {

DeletionTargets deletion_targets(const Event& deletion) {
  DeletionTargets targets;
  auto& [events, addresses] = targets;
  for (const auto tag : deletion.tags()) {
    if (tag.name() == "e") {
      if (const auto id = EventId::from_hex(tag.value())) events.push_back(*id);
    } else if (tag.name() == "a") {
      auto address = Address::parse(tag.value());
      if (address && address->pubkey == deletion.pubkey()) addresses.push_back(std::move(*address));
    }
  }
  std::sort(events.begin(), events.end());
  events.erase(std::unique(events.begin(), events.end()), events.end());
  std::sort(addresses.begin(), addresses.end(),
            [](const Address& a, const Address& b) { return std::tie(a.kind, a.d) < std::tie(b.kind, b.d); });
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return targets;
}

}  // namespace todoke::nostr
