#include "net/client_network.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace todoke::net {
namespace {

constexpr unsigned kBits = 128;
constexpr unsigned kV4Bits = 32;
constexpr NetworkPrefixes kShown{24, 48};
constexpr NetworkPrefixes kNeighbourhood{16, 32};

unsigned bits_of(const IpBytes& ip, NetworkPrefixes prefixes) {
  return is_v4(ip) ? std::min(prefixes.v4_bits, kV4Bits) : std::min(prefixes.v6_bits, kBits);
}

}  // namespace

IpBytes network_of(const IpBytes& ip, NetworkPrefixes prefixes) {
  auto bytes = ip;
  const unsigned before = is_v4(ip) ? kBits - kV4Bits : 0;
  for (unsigned bit = before + bits_of(ip, prefixes); bit < kBits; ++bit) {
    auto& byte = bytes[bit / 8];
    byte = static_cast<std::uint8_t>(byte & ~(0x80U >> bit % 8));
  }
  return bytes;
}

std::string network_of(std::string_view ip, NetworkPrefixes prefixes) {
  const auto bytes = parse_ip(ip);
  if (!bytes) return std::string(ip);
  const unsigned bits = bits_of(*bytes, prefixes);
  auto network = format_ip(network_of(*bytes, prefixes));
  if (bits == (is_v4(*bytes) ? kV4Bits : kBits)) return network;
  return fmt::format("{}/{}", network, bits);
}

std::string shown_network(std::string_view ip) {
  return network_of(ip, kShown);
}

std::string neighbourhood_of(std::string_view ip) {
  return network_of(ip, kNeighbourhood);
}

}  // namespace todoke::net
