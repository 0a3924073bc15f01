#include "net/connector.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "net/socket_asio.hpp"
#include "net/watchdog.hpp"

namespace todoke::net {
namespace {

asio::ip::tcp::endpoint endpoint_of(const SocketAddress& address) {
  asio::ip::tcp::endpoint endpoint;
  endpoint.resize(address.size());
  std::copy_n(reinterpret_cast<const char*>(address.data()), address.size(),
              reinterpret_cast<char*>(endpoint.data()));
  return endpoint;
}

// The reason it failed; empty when `socket` is connected.
Task<std::string> try_address(Socket& socket, const SocketAddress& address, std::chrono::nanoseconds limit) {
  bool timed_out = false;
  boost::system::error_code error;
  Watchdog watchdog(socket.get_executor(), [&] {
    timed_out = true;
    boost::system::error_code ignored;  // the pending connect reports the close
    socket.close(ignored);
  });
  watchdog.arm(limit);
  co_await socket.async_connect(endpoint_of(address), asio::redirect_error(asio::use_awaitable, error));
  if (timed_out) co_return std::string("timed out");
  co_return error ? error.message() : std::string();
}

}  // namespace

Task<ConnectedSocket> connect_tcp(HostPort where, Deadline deadline) {
  const Executor executor = co_await asio::this_coro::executor;
  const auto addresses = co_await resolve(where, deadline.left());
  std::string why;
  for (std::size_t i = 0; i < addresses.size() && !deadline.passed(); ++i) {
    Socket socket(executor, protocol_of(addresses[i].family()));
    why = co_await try_address(socket, addresses[i], deadline.left() / (addresses.size() - i));
    if (why.empty()) co_return ConnectedSocket{Fd(socket.release()), addresses[i].ip()};
  }
  throw NetError(fmt::format("can't connect to {}: {}", format_host_port(where.host, where.port),
                             why.empty() ? "timed out" : why));
}

}  // namespace todoke::net
