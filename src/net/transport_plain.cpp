#include "net/transport_plain.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net/socket_asio.hpp"

namespace todoke::net {
namespace {

using boost::system::error_code;

class PlainTransport final : public SocketTransport {
 public:
  PlainTransport(const Executor& executor, UniqueFd socket, std::string peer_ip)
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
    std::array<iovec, kWritePartsMax> vectors;  // NOLINT: filled below
    std::size_t count = 0;
    for (const auto part : parts) {
      if (!part.empty()) vectors[count++] = iovec{const_cast<char*>(part.data()), part.size()};
    }
    auto rest = std::span(vectors).first(count);
    while (!rest.empty()) {
      const auto sent = send_now(rest);
      if (sent > 0) {
        bytes_sent_ += sent;
        rest = skip(rest, sent);
        continue;
      }
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

  [[nodiscard]] const std::string& peer_ip() const override { return peer_ip_; }
  [[nodiscard]] bool secure() const override { return false; }
  [[nodiscard]] Executor executor() const override { return executor_of(socket_); }
  [[nodiscard]] std::uint64_t bytes_sent() const override { return bytes_sent_; }

  [[nodiscard]] bool stale() const override {
    if (!socket_.is_open()) return true;
    char byte = 0;
    const auto n = ::recv(const_cast<Socket&>(socket_).native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  static Executor executor_of(const Socket& socket) { return const_cast<Socket&>(socket).get_executor(); }

  // 0: the socket is full.
  std::size_t send_now(std::span<iovec> vectors) {
    if (!socket_.is_open()) throw NetError("write: closed");
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = vectors.size();
    while (true) {
      const auto n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0) return static_cast<std::size_t>(n);
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
      throw NetError(std::string("write: ") + std::strerror(errno));
    }
  }

  static std::span<iovec> skip(std::span<iovec> vectors, std::size_t bytes) {
    while (!vectors.empty() && bytes >= vectors.front().iov_len) {
      bytes -= vectors.front().iov_len;
      vectors = vectors.subspan(1);
    }
    if (!vectors.empty()) {
      vectors.front().iov_base = static_cast<char*>(vectors.front().iov_base) + bytes;
      vectors.front().iov_len -= bytes;
    }
    return vectors;
  }

  Socket socket_;
  std::string peer_ip_;
  std::uint64_t bytes_sent_ = 0;
};

}  // namespace

std::shared_ptr<SocketTransport> make_plain_transport(const Executor& executor, UniqueFd socket, std::string peer_ip) {
  return std::make_shared<PlainTransport>(executor, std::move(socket), std::move(peer_ip));
}

}  // namespace todoke::net
