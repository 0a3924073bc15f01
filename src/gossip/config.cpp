#include "gossip/config.hpp"

#include <fmt/format.h>

#include "gossip/endpoint.hpp"
#include "gossip/peer.hpp"

namespace todoke::gossip {

std::span<const KeySpec* const> config_keys() {
  static constexpr const KeySpec* kKeys[] = {
      &keys::kEnabled.spec,          &keys::kListen.spec,          &keys::kPeers.spec,
      &keys::kBlocked.spec,          &keys::kConnectionsMax.spec,  &keys::kEventsPerSecond.spec,
      &keys::kRefusedPerMinute.spec, &keys::kSentPerSecond.spec,   &keys::kRelays.spec,
      &keys::kReconcileEvery.spec,   &keys::kReconcileWindow.spec, &keys::kBackfillFrom.spec,
      &keys::kBackfillEvery.spec,
  };
  return kKeys;
}

Expected<void> check_config(const Config& config) {
  if (config.get(keys::kEnabled) == "on" && !left_out().empty()) {
    return refuse(fmt::format("gossip.enabled is on, but this build has no gossip: {}", left_out()));
  }
  for (const auto& text : config.get(keys::kPeers)) {
    if (const auto peer = parse_peer(text); !peer) return refuse("gossip.peers: " + peer.error().message);
  }
  for (const auto& text : config.get(keys::kRelays)) {
    if (!is_relay_url(text)) return refuse(fmt::format("gossip.relays can't have '{}': https://host", text));
  }
  for (const auto& text : config.get(keys::kBackfillFrom)) {
    if (!text.starts_with("ws://") && !text.starts_with("wss://"))
      return refuse(fmt::format("gossip.backfill_from can't have '{}': wss://host", text));
  }
  for (const auto& text : config.get(keys::kBlocked)) {
    if (!NodeId::from_hex(text))
      return refuse(fmt::format("gossip.blocked can't have '{}': a node id has 64 hex digits", text));
  }
  return {};
}

bool is_on(const Config& config) {
  return config.get(keys::kEnabled) != "off" && left_out().empty();
}

}  // namespace todoke::gossip
