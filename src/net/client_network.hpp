// What counts as one client by its address, and what a log may say of it. Pure.
//
// An IPv4 address is one client. An IPv6 customer has at least a /64 (RFC 6177) and can change its address
// within it for every connection, so the network counts.
#pragma once

#include <string>
#include <string_view>

#include "net/ip.hpp"

namespace todoke::net {

struct NetworkPrefixes {
  unsigned v4_bits = 32;
  unsigned v6_bits = 64;
};

// The address without the bits that a client may choose.
IpBytes network_of(const IpBytes& ip, NetworkPrefixes prefixes);
// The network of the address, such as 192.0.2.7 (32 bits) or 2001:db8::/64. A text that is no address is its
// own network.
std::string network_of(std::string_view ip, NetworkPrefixes prefixes);

// For logs: /24 or /48, which names a provider's customers rather than one of them.
std::string shown_network(std::string_view ip);

// The network with which the address shares a bucket when there is no room for one of its own: /16 or /32, in
// which one attacker may have many addresses.
std::string neighbourhood_of(std::string_view ip);

}  // namespace todoke::net
