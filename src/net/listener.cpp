#include "net/listener.hpp"

#include <cerrno>
#include <cstring>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "net/socket_asio.hpp"

namespace todoke::net {
namespace {

using Acceptor = asio::ip::tcp::acceptor;

Fd bind_and_listen(const SocketAddress& where, bool shares_port) {
  const auto failed = [&](std::string_view step) {
    const int code = errno;
    return UserError(fmt::format("can't listen on {}: {}: {}", where.text(), step, std::strerror(code)));
  };
  Fd fd(::socket(where.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) throw failed("socket");
  const int on = 1;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) throw failed("SO_REUSEADDR");
  if (shares_port && ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0)
    throw failed("SO_REUSEPORT");
  if (::bind(fd.get(), where.data(), where.size()) != 0) throw failed("bind");
  if (::listen(fd.get(), Listener::kBacklog) != 0) throw failed("listen");
  return fd;
}

enum class AcceptError { none_waits, skip, out_of_files, broken };

AcceptError classify(int error) {
  switch (error) {
    case EAGAIN:
      return AcceptError::none_waits;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return AcceptError::out_of_files;
    // What accept(2) passes on from the new connection's network, and a connection that is gone again.
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case EPERM:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
      return AcceptError::skip;
    default:
      return AcceptError::broken;
  }
}

}  // namespace

struct Listener::State {
  State(const Executor& executor, Fd fd, int family) : acceptor(executor) {
    acceptor.assign(protocol_of(family), fd.get());
    static_cast<void>(fd.release());
  }
  Acceptor acceptor;
};

Listener::Listener(const Executor& executor, const SocketAddress& where, bool shares_port) {
  auto fd = bind_and_listen(where, shares_port);
  bound_ = local_address(fd.get());
  state_ = std::make_unique<State>(executor, std::move(fd), where.family());
}

Listener::~Listener() = default;

void Listener::close() noexcept {
  boost::system::error_code ignored;  // the descriptor is gone in any case
  state_->acceptor.close(ignored);
}

Task<Listener::Batch> Listener::accept_some() {
  Batch batch;
  while (state_->acceptor.is_open() && batch.sockets.size() < kAcceptBatchMax) {
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    Fd fd(::accept4(state_->acceptor.native_handle(), reinterpret_cast<sockaddr*>(&peer), &length,
                    SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      batch.sockets.push_back({std::move(fd), ip_of(peer)});
      continue;
    }
    const int code = errno;
    const auto error = classify(code);
    if (error == AcceptError::skip) continue;
    if (error == AcceptError::broken) throw NetError(fmt::format("accept: {}", std::strerror(code)));
    if (error == AcceptError::out_of_files) {
      batch.out_of_files = true;
      break;
    }
    if (!batch.sockets.empty()) break;
    boost::system::error_code closed;
    co_await state_->acceptor.async_wait(Acceptor::wait_read,
                                         asio::redirect_error(asio::use_awaitable, closed));
    if (closed) break;
  }
  co_return batch;
}

}  // namespace todoke::net
