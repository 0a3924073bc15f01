// IP addresses as bytes. IPv4 is kept in its IPv6 form (::ffff:1.2.3.4), so both spellings of an address are
// equal. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>

namespace todoke::net {

using IpBytes = std::array<std::uint8_t, 16>;

std::optional<IpBytes> parse_ip(std::string_view text);
std::string format_ip(const IpBytes& ip);
bool is_v4(const IpBytes& ip);
// Of a socket's end. All zero where it is neither IPv4 nor IPv6.
IpBytes ip_of(const sockaddr_storage& address);

}  // namespace todoke::net
