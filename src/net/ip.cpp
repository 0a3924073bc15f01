#include "net/ip.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>
#include <netinet/in.h>

namespace todoke::net {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

}  // namespace

bool is_v4(const IpBytes& ip) {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), ip.begin());
}

std::optional<IpBytes> parse_ip(std::string_view text) {
  // inet_pton reads up to the first NUL only.
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string copy(text);
  IpBytes ip{};
  if (::inet_pton(AF_INET6, copy.c_str(), ip.data()) == 1) return ip;
  std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), ip.begin());
  if (::inet_pton(AF_INET, copy.c_str(), ip.data() + kMappedPrefix.size()) == 1) return ip;
  return std::nullopt;
}

std::string format_ip(const IpBytes& ip) {
  char text[INET6_ADDRSTRLEN] = {};
  if (is_v4(ip)) {
    ::inet_ntop(AF_INET, ip.data() + kMappedPrefix.size(), text, sizeof(text));
  } else {
    ::inet_ntop(AF_INET6, ip.data(), text, sizeof(text));
  }
  return text;
}

IpBytes ip_of(const sockaddr_storage& address) {
  IpBytes ip{};
  if (address.ss_family == AF_INET) {
    std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), ip.begin());
    std::memcpy(ip.data() + kMappedPrefix.size(), &reinterpret_cast<const sockaddr_in&>(address).sin_addr,
                ip.size() - kMappedPrefix.size());
  } else if (address.ss_family == AF_INET6) {
    std::memcpy(ip.data(), &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr, ip.size());
  }
  return ip;
}

}  // namespace todoke::net
