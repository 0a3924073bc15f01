#include "net/client_network.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "net/proxies.hpp"

namespace todoke::net {
namespace {

constexpr unsigned kBits = 128;
constexpr unsigned kV4Bits = 32;
constexpr NetworkPrefixes kShown{24, 48};
constexpr NetworkPrefixes kNeighbourhood{16, 32};

}  // namespace

std::string network_of(std::string_view ip, NetworkPrefixes prefixes) {
  auto bytes = parse_ip(ip);
  if (!bytes) return std::string(ip);
  const bool v4 = is_v4(*bytes);
  const unsigned whole = v4 ? kV4Bits : kBits;
  const unsigned bits = std::min(v4 ? prefixes.v4_bits : prefixes.v6_bits, whole);
  for (unsigned bit = kBits - whole + bits; bit < kBits; ++bit) {
    auto& byte = (*bytes)[bit / 8];
    byte = static_cast<std::uint8_t>(byte & ~(0x80U >> bit % 8));
  }
  if (bits == whole) return format_ip(*bytes);
  return fmt::format("{}/{}", format_ip(*bytes), bits);
}

std::string shown_network(std::string_view ip) {
  return network_of(ip, kShown);
}

std::string neighbourhood_of(std::string_view ip) {
  return network_of(ip, kNeighbourhood);
}

}  // namespace todoke::net
