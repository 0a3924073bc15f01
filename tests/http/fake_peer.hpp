// A server that the test scripts connection by connection, for what a well-behaved one never does.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "net/socket.hpp"

namespace todoke::net::test {

class FakePeer {
 public:
  // Each connection, in the order of arrival, is given to the next of `scripts` on a thread of the peer's.
  using Script = std::function<void(int socket)>;
  explicit FakePeer(std::vector<Script> scripts);
  // Hangs up on the connection under way.
  ~FakePeer();

  [[nodiscard]] std::uint16_t port() const { return port_; }

  // For scripts: reads until the end of a request's header (false: the connection ended), and writes.
  static bool read_request(int socket);
  static void write(int socket, std::string_view bytes);
  // Reads until the client hangs up.
  static void await_end(int socket);
  // Makes the close that follows a reset.
  static void reset(int socket);

 private:
  void serve();

  Fd listener_;
  std::uint16_t port_ = 0;
  std::vector<Script> scripts_;
  std::mutex mutex_;
  Fd connection_;  // the one under way; replaced and shut down under the lock
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace todoke::net::test
