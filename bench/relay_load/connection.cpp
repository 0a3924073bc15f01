#include "relay_load/connection.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "net/deflate.hpp"
#include "net/url.hpp"
#include "net/ws_handshake.hpp"

namespace todoke::bench {
namespace {

// Takes a page of a hundred events in one call; two hundred subscribers have 13 MB of it together.
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kHandshakeBytesMax = 16 * 1024;

std::string last_error() {
  return std::generic_category().message(errno);
}

net::Url parse_ws_url(const std::string& text) {
  constexpr std::string_view kScheme = "ws://";
  if (!text.starts_with(kScheme)) {
    throw UserError(fmt::format("'{}' is no ws:// URL (the load generator speaks no TLS)", text));
  }
  auto url = net::parse_url("http://" + text.substr(kScheme.size()));
  if (!url) throw UserError(fmt::format("'{}': {}", text, url.error().message));
  return std::move(*url);
}

std::string_view header_value(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    auto line = cut_until(head, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (same_ignoring_case(cut_until(line, ':'), name)) return trimmed(line);
  }
  return {};
}

std::string close_text(std::string_view payload) {
  if (payload.size() < 2) return "the relay closed the connection without a code";
  const auto code = (static_cast<unsigned>(static_cast<std::uint8_t>(payload[0])) << 8U) |
                    static_cast<std::uint8_t>(payload[1]);
  return fmt::format("the relay closed the connection: {} {}", code, payload.substr(2));
}

}  // namespace

Connection::Connection(const std::string& url, bool offers_deflate)
    : in_(kReadBytes, '\0'), deflate_(offers_deflate) {
  try {
    open(url);
  } catch (...) {
    if (fd_ >= 0) ::close(fd_);
    throw;
  }
}

Connection::~Connection() {
  ::close(fd_);
}

void Connection::open(const std::string& text) {
  const auto url = parse_ws_url(text);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(url.host.c_str(), std::to_string(url.port).c_str(), &hints, &list);
  if (failed != 0) throw std::runtime_error(fmt::format("{}: {}", url.host, gai_strerror(failed)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(list, &freeaddrinfo);
  std::string why = "no address";
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    fd_ = ::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd_ < 0) throw std::runtime_error("socket: " + last_error());
    // The handshake is done blocking; a relay that says nothing is given up by these.
    const timeval limit{kConnectMax.count(), 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (::connect(fd_, a->ai_addr, a->ai_addrlen) == 0) break;
    why = last_error();
    ::close(fd_);
    fd_ = -1;
  }
  if (fd_ < 0) throw std::runtime_error(fmt::format("cannot connect to {}: {}", text, why));
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  handshake(url.authority(), url.target);
  if (fcntl(fd_, F_SETFL, O_NONBLOCK) != 0) throw std::runtime_error("fcntl: " + last_error());
}

void Connection::handshake(const std::string& authority, const std::string& target) {
  const auto key = net::new_websocket_key();
  const auto hello = fmt::format(
      "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: {}\r\nSec-WebSocket-Version: 13\r\n{}\r\n",
      target, authority, key,
      deflate_ ? fmt::format("Sec-WebSocket-Extensions: {}\r\n", net::kDeflateOffer) : "");
  if (::send(fd_, hello.data(), hello.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello.size()))
    throw std::runtime_error("handshake: " + last_error());
  std::string answer;
  std::size_t end = std::string::npos;
  while ((end = answer.find("\r\n\r\n")) == std::string::npos) {
    if (answer.size() > kHandshakeBytesMax) throw std::runtime_error("handshake: an endless answer");
    char buffer[4096];
    const auto n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n == 0) throw std::runtime_error("handshake: the relay closed the connection");
    if (n < 0) throw std::runtime_error("handshake: " + last_error());
    answer.append(buffer, static_cast<std::size_t>(n));
  }
  const auto head = answer.substr(0, end + 2);
  if (!head.starts_with("HTTP/1.1 101"))
    throw std::runtime_error("no WebSocket here: " + head.substr(0, head.find("\r\n")));
  if (header_value(head, "sec-websocket-accept") != net::websocket_accept(key))
    throw std::runtime_error("handshake: the answer belongs to another key");
  deflate_ = deflate_ && !header_value(head, "sec-websocket-extensions").empty();
  in_end_ = answer.size() - (end + 4);
  std::memcpy(in_.data(), answer.data() + end + 4, in_end_);
}

void Connection::write() {
  while (has_output()) {
    const auto n = ::send(fd_, out_.data() + out_at_, out_.size() - out_at_, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      throw ConnectionEnded("the connection broke while sending: " + last_error());
    }
    out_at_ += static_cast<std::size_t>(n);
  }
  out_.clear();
  out_at_ = 0;
}

void Connection::fill() {
  if (in_end_ == in_.size()) in_.resize(2 * in_.size());
  const auto n = ::recv(fd_, in_.data() + in_end_, in_.size() - in_end_, 0);
  if (n > 0) {
    in_end_ += static_cast<std::size_t>(n);
    return;
  }
  if (n == 0) throw ConnectionEnded("the relay ended the connection without a close");
  if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
    throw ConnectionEnded("the connection broke: " + last_error());
}

std::optional<std::string_view> Connection::next_message() {
  if (give_fragments_) {  // the message given last is used up
    fragments_.clear();
    give_fragments_ = false;
  }
  while (true) {
    const auto frame = first_frame(std::string_view(in_).substr(in_at_, in_end_ - in_at_), deflate_);
    if (!frame) return std::nullopt;
    in_at_ += frame->size;
    switch (frame->opcode) {
      case Opcode::ping:
        append_frame(out_, Opcode::pong, frame->payload);
        break;
      case Opcode::pong:
        break;
      case Opcode::close:
        throw ConnectionEnded(close_text(frame->payload));
      case Opcode::text:
      case Opcode::binary:
        if (frame->final && !fragmented_) return plain(*frame);
        if (frame->compressed) throw std::runtime_error("the relay sent a compressed message in pieces");
        [[fallthrough]];
      case Opcode::continuation:
        if (fragments_.size() + frame->payload.size() > kFrameBytesMax)
          throw std::runtime_error("the relay sent a message without end");
        fragments_.append(frame->payload);
        fragmented_ = !frame->final;
        if (frame->final) {
          give_fragments_ = true;
          return fragments_;
        }
        break;
      default:
        throw std::runtime_error("the relay sent a frame of an unknown kind");
    }
  }
}

std::string_view Connection::plain(const Frame& frame) {
  if (!frame.compressed) return frame.payload;
  if (net::inflate_message(frame.payload, kFrameBytesMax, inflated_) != net::Inflated::ok)
    throw std::runtime_error("the relay sent a message that can't be inflated");
  return inflated_;
}

void Connection::compact() {
  if (in_at_ == in_end_) {
    in_at_ = in_end_ = 0;
  } else if (in_at_ > 0) {
    std::memmove(in_.data(), in_.data() + in_at_, in_end_ - in_at_);
    in_end_ -= in_at_;
    in_at_ = 0;
  }
}

}  // namespace todoke::bench
