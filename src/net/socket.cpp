#include "net/socket.hpp"

#include <arpa/inet.h>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "base/text.hpp"
#include "net/transport.hpp"

namespace todoke::net {

Expected<HostPort> parse_host_port(std::string_view text) {
  const auto refused = [&] { return refuse(fmt::format("'{}' is not host:port", text)); };
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || text.find('\0') != std::string_view::npos)
    return refused();
  auto host = text.substr(0, colon);
  const auto digits = text.substr(colon + 1);
  const auto port = parse_number<std::uint16_t>(digits);
  if (!port) return refused();
  HostPort result;
  result.port = *port;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    in6_addr parsed{};
    if (::inet_pton(AF_INET6, std::string(host).c_str(), &parsed) != 1) return refused();
  } else if (host.find_first_of("[]:/@ ") != std::string_view::npos) {
    return refused();
  }
  result.host = host;
  return result;
}

std::string format_host_port(std::string_view host, std::uint16_t port) {
  if (host.find(':') != std::string_view::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

SocketAddress::SocketAddress(const sockaddr* address, socklen_t length) : size_(length) {
  if (length > sizeof(storage_)) throw std::invalid_argument("socket address too long");
  std::memcpy(&storage_, address, length);
}

std::string SocketAddress::ip() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text, sizeof(text));
  } else if (family() == AF_INET6) {
    const auto& address = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&address)) {
      ::inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof(text));
    } else {
      ::inet_ntop(AF_INET6, &address, text, sizeof(text));
    }
  }
  return text;
}

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

SocketAddress local_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof(storage);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    throw NetError(fmt::format("getsockname: {}", std::strerror(errno)));
  }
  return {reinterpret_cast<const sockaddr*>(&storage), length};
}

bool peer_has_ended(int fd) {
  pollfd state{fd, POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0;
}

namespace {

std::vector<SocketAddress> look_up(const HostPort& where, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &found);
  if (error != 0) throw NetError(fmt::format("can't resolve {}: {}", where.host, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> guard(found, &::freeaddrinfo);
  std::vector<SocketAddress> result;
  for (const auto* a = found; a != nullptr && result.size() < kAddressesMax; a = a->ai_next) {
    result.emplace_back(a->ai_addr, a->ai_addrlen);
  }
  if (result.empty()) throw NetError(fmt::format("can't resolve {}: no address", where.host));
  return result;
}

bool is_numeric(const std::string& host) {
  in6_addr parsed{};
  return ::inet_pton(AF_INET, host.c_str(), &parsed) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &parsed) == 1;
}

using Found = std::shared_ptr<std::vector<SocketAddress>>;

Task<void> look_up_in_pool(Found found, HostPort where) {
  const std::function<void()> job = [found, where] { *found = look_up(where, AI_ADDRCONFIG); };
  co_await run_blocking(job);
}

}  // namespace

Task<std::vector<SocketAddress>> resolve(HostPort where, std::chrono::nanoseconds limit) {
  if (is_numeric(where.host)) co_return look_up(where, AI_NUMERICHOST);
  // The resolver can't be interrupted: it runs in the background and may end after the caller has given up.
  const Executor executor = co_await asio::this_coro::executor;
  auto found = std::make_shared<std::vector<SocketAddress>>();
  auto failure = std::make_shared<std::exception_ptr>();
  auto done = std::make_shared<Signal>(executor);
  spawn(executor, look_up_in_pool(found, where), [done, failure](std::exception_ptr error) {
    *failure = std::move(error);
    done->set();
  });
  const bool in_time = co_await done->wait_for(limit);
  if (!in_time) throw NetError(fmt::format("can't resolve {} in time", where.host));
  if (*failure) std::rethrow_exception(*failure);
  co_return std::move(*found);
}

}  // namespace todoke::net
