// A client of the relay without manners, for tests and benches of abuse: a blocking socket from an address of
// its choice (127.0.0.2 and on are other clients than 127.0.0.1), and bytes.
#pragma once

#include <arpa/inet.h>
#include <cstdint>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/fd.hpp"
#include "net/frame.hpp"

namespace todoke::test {

class HostileClient {
 public:
  // Connects, and says nothing.
  HostileClient(std::uint16_t port, const std::string& source)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    // A relay that reads no more must not hold the caller up for ever.
    const timeval patience{kSendPatienceSeconds, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    const auto from = address_of(source, 0);
    const auto to = address_of("127.0.0.1", port);
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)) != 0 ||
        ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0)
      throw std::runtime_error("a hostile client can't connect");
  }
  // With a WebSocket, whose answer must be a 101.
  static HostileClient websocket(std::uint16_t port, const std::string& source) {
    HostileClient client(port, source);
    client.write(
        "GET /relay HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover; "
        "server_no_context_takeover\r\n\r\n");
    const auto answer = client.read_some();
    if (!answer.starts_with("HTTP/1.1 101")) throw std::runtime_error("no WebSocket: " + answer);
    return client;
  }

  // False: the relay has ended the connection, or takes nothing.
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  bool send(std::string_view text) {
    std::string frame;
    net::append_frame(frame, 0x81, text, net::Masking::random);
    return write(frame);
  }
  // Everything until the relay has ended the connection.
  std::string read_to_end() {
    std::string all;
    for (auto some = read_some(); !some.empty(); some = read_some()) all += some;
    return all;
  }

  // What has come; empty at the end of the connection.
  std::string read_some() {
    constexpr int kPatienceMs = 60'000;
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, kPatienceMs) <= 0)
      throw std::runtime_error("the relay goes on with a hostile client");
    std::string bytes(64 * 1024, '\0');
    const auto n = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    bytes.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return bytes;
  }

 private:
  static constexpr int kSendPatienceSeconds = 2;

  static sockaddr_in address_of(const std::string& ip, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, ip.c_str(), &address.sin_addr);
    return address;
  }

  Fd socket_;
};

}  // namespace todoke::test
