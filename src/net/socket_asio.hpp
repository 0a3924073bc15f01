// Bare sockets as Asio's. Heavy: only for the few files that hold an Asio socket.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <boost/asio/ip/tcp.hpp>

#include "net/socket.hpp"
#include "net/transport.hpp"

namespace todoke::net {

using Socket = asio::ip::tcp::socket;

inline asio::ip::tcp protocol_of(int family) {
  return family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4();
}

// Takes over a connected socket: non-blocking, small writes go out at once.
inline Socket adopt_socket(const Executor& executor, Fd fd) {
  const int on = 1;
  // Fails only for sockets that are no TCP sockets, which tests use.
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  const auto family = local_address(fd.get()).family();
  Socket socket(executor);
  boost::system::error_code error;
  socket.assign(protocol_of(family), fd.get(), error);
  if (error) throw NetError("socket: " + error.message());
  static_cast<void>(fd.release());
  socket.native_non_blocking(true, error);
  if (error) throw NetError("socket: " + error.message());
  return socket;
}

}  // namespace todoke::net
