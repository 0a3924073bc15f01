#include "net/transport_plain.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net/socket_asio.hpp"

namespace todoke::net {
namespace {

using boost::system::error_code;

class PlainTransport final : public SocketTransport {
 public:
  PlainTransport(const Executor& executor, Fd socket, std::string peer_ip)
      : socket_(adopt_socket(executor, std::move(socket))), peer_ip_(std::move(peer_ip)) {}

  Task<std::size_t> read_some(std::span<char> into) override {
    error_code error;
    const auto n = co_await socket_.async_read_some(asio::buffer(into.data(), into.size()),
                                                    asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof) co_return 0;
    if (error) throw NetError("read: " + error.message());
    co_return n;
  }

  Task<void> write(std::span<const std::string_view> parts) override {
    if (parts.size() > kWritePartsMax) throw std::logic_error("too many parts in one write");
    std::size_t rest = 0;
    for (const auto part : parts) rest += part.size();
    std::size_t done = 0;
    while (rest > 0) {
      const auto sent = send_now(parts, done);
      bytes_sent_ += sent;
      done += sent;
      rest -= sent;
      if (sent > 0) continue;
      error_code error;
      co_await socket_.async_wait(Socket::wait_write, asio::redirect_error(asio::use_awaitable, error));
      if (error) throw NetError("write: " + error.message());
    }
  }

  Task<void> finish() override {
    error_code ignored;  // a peer that has gone already needs no goodbye
    socket_.shutdown(Socket::shutdown_send, ignored);
    co_return;
  }

  void close() noexcept override {
    error_code ignored;  // nothing can be done about it, and the descriptor is gone in any case
    socket_.close(ignored);
  }

  [[nodiscard]] bool peer_has_ended() override {
    return !socket_.is_open() || net::peer_has_ended(socket_.native_handle());
  }
  [[nodiscard]] const std::string& peer_ip() const override { return peer_ip_; }
  [[nodiscard]] bool secure() const override { return false; }
  [[nodiscard]] Executor executor() const override { return executor_of(socket_); }
  [[nodiscard]] std::uint64_t bytes_sent() const override { return bytes_sent_; }

  [[nodiscard]] bool stale() override {
    if (!socket_.is_open()) return true;
    char byte = 0;
    const auto n = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  static Executor executor_of(const Socket& socket) { return const_cast<Socket&>(socket).get_executor(); }

  // One gathered write of what follows the first `done` bytes. 0: the socket is full.
  std::size_t send_now(std::span<const std::string_view> parts, std::size_t done) {
    if (!socket_.is_open()) throw NetError("write: closed");
    std::array<iovec, kWritePartsMax> vectors{};
    std::size_t count = 0;
    for (auto part : parts) {
      const auto skipped = std::min(done, part.size());
      done -= skipped;
      part.remove_prefix(skipped);
      if (!part.empty()) vectors[count++] = iovec{const_cast<char*>(part.data()), part.size()};
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = count;
    while (true) {
      const auto n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
      throw NetError(std::string("write: ") + std::strerror(errno));
    }
  }

  Socket socket_;
  std::string peer_ip_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace

std::shared_ptr<SocketTransport> make_plain_transport(const Executor& executor, Fd socket,
                                                      std::string peer_ip) {
  return std::make_shared<PlainTransport>(executor, std::move(socket), std::move(peer_ip));
}

}  // namespace todoke::net
