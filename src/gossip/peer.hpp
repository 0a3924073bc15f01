// A node to dial, as people write it: `node_id@host:port`, with 64 hex digits, and an IPv6 address in
// brackets. In the place of host:port, or after it and a `+`, the URL of an iroh relay server.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "gossip/ids.hpp"

namespace todoke::gossip {

struct Peer {
  NodeId id;
  std::string address;  // host:port, https://relay, or host:port+https://relay

  [[nodiscard]] std::string text() const { return id.hex() + "@" + address; }
  friend bool operator==(const Peer&, const Peer&) = default;
};

Expected<Peer> parse_peer(std::string_view text);

// Of an iroh relay server; http:// is for tests.
bool is_relay_url(std::string_view text);

}  // namespace todoke::gossip
