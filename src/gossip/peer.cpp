#include "gossip/peer.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/text.hpp"

namespace todoke::gossip {
namespace {

constexpr std::size_t kHostBytesMax = 253;  // of a name in DNS

bool is_host(std::string_view host) {
  if (host.starts_with('[')) {
    if (!host.ends_with(']')) return false;
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return false;
  }
  return !host.empty() && host.size() <= kHostBytesMax &&
         std::all_of(host.begin(), host.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '@'; });
}

bool is_port(std::string_view text) {
  return parse_number<std::uint16_t>(text).value_or(0) > 0;
}

constexpr std::size_t kUrlBytesMax = 200;  // a row of gossip_peers has room for it beside host:port

}  // namespace

bool is_relay_url(std::string_view text) {
  const auto mark = text.find("://");
  if (mark == std::string_view::npos || text.size() > kUrlBytesMax) return false;
  const auto scheme = text.substr(0, mark);
  const auto rest = text.substr(mark + 3);
  return (scheme == "https" || scheme == "http") && !rest.empty() &&
         std::all_of(rest.begin(), rest.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '+'; });
}

Expected<Peer> parse_peer(std::string_view text) {
  const auto refused = [&](std::string_view why) {
    return refuse(
        fmt::format("'{}' is no peer: {} (node_id@host:port, as `todoke p2p info` prints it)", text, why));
  };
  const auto at = text.find('@');
  if (at == std::string_view::npos) return refused("there is no @");
  const auto id = NodeId::from_hex(text.substr(0, at));
  if (!id) return refused("the node id has 64 hex digits in lower case");
  const auto whole = text.substr(at + 1);
  const auto plus = whole.find('+');
  const bool has_relay = plus != std::string_view::npos || is_relay_url(whole);
  if (has_relay && !is_relay_url(plus == std::string_view::npos ? whole : whole.substr(plus + 1)))
    return refused("the relay is no https://host");
  if (has_relay && plus == std::string_view::npos) return Peer{*id, std::string(whole)};
  const auto address = whole.substr(0, plus);
  const auto colon = address.rfind(':');
  if (colon == std::string_view::npos) return refused("there is no port");
  if (!is_host(address.substr(0, colon))) return refused("the host is wrong");
  if (!is_port(address.substr(colon + 1))) return refused("a port is a number from 1 to 65535");
  return Peer{*id, std::string(whole)};
}

}  // namespace todoke::gossip
