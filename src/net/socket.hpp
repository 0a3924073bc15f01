// Addresses and bare sockets, without Asio: what listener, connector and transports share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include "base/async.hpp"
#include "base/error.hpp"
#include "base/fd.hpp"

namespace todoke::net {

struct HostPort {
  HostPort() = default;
  HostPort(std::string h, std::uint16_t p) : host(std::move(h)), port(p) {}

  std::string host;  // a name, an IPv4 address, or an IPv6 address without its brackets
  std::uint16_t port = 0;
};

// "localhost:80", "127.0.0.1:0", "[::1]:7447".
Expected<HostPort> parse_host_port(std::string_view text);
// The other way round; an IPv6 address gets its brackets.
std::string format_host_port(std::string_view host, std::uint16_t port);

class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const sockaddr* address, socklen_t length);

  [[nodiscard]] const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const { return size_; }
  [[nodiscard]] int family() const { return storage_.ss_family; }
  // An IPv4 address that comes as IPv6 (::ffff:1.2.3.4) shows as IPv4.
  [[nodiscard]] std::string ip() const;
  [[nodiscard]] std::uint16_t port() const;
  [[nodiscard]] std::string text() const { return format_host_port(ip(), port()); }

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

// The local end of a bound socket.
SocketAddress local_address(int fd);

// Whether the other end of a connected socket has ended its side, or the connection is broken.
bool peer_has_ended(int fd);

// At most this many addresses of a name are used; more would only spread one deadline thinner.
inline constexpr std::size_t kAddressesMax = 8;

// The addresses of a name, at least one, in the resolver's order. Addresses in digits are parsed at once;
// names go to the system's resolver on the pool for blocking calls, and the caller stops waiting after
// `limit`. Throws NetError.
Task<std::vector<SocketAddress>> resolve(HostPort where, std::chrono::nanoseconds limit);

}  // namespace todoke::net
