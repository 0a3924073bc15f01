#include "fake_peer.hpp"

#include <netinet/in.h>
#include <stdexcept>
#include <sys/socket.h>

namespace todoke::net::test {

FakePeer::FakePeer(std::vector<Script> scripts)
    : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), scripts_(std::move(scripts)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener_.get(), 16) != 0) {
    throw std::runtime_error("can't listen");
  }
  port_ = local_address(listener_.get()).port();
  thread_ = std::thread([this] { serve(); });
}

void FakePeer::serve() {
  for (const auto& script : scripts_) {
    Fd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted) return;
    const int socket = accepted.get();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      connection_ = std::move(accepted);
    }
    script(socket);
    const std::lock_guard lock(mutex_);
    connection_.reset();
  }
}

FakePeer::~FakePeer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (connection_) ::shutdown(connection_.get(), SHUT_RDWR);
  }
  thread_.join();
}

bool FakePeer::read_request(int socket) {
  std::string seen;
  char c = 0;
  while (!seen.ends_with("\r\n\r\n")) {
    if (::recv(socket, &c, 1, 0) != 1) return false;
    seen.push_back(c);
  }
  return true;
}

void FakePeer::write(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void FakePeer::await_end(int socket) {
  char buffer[1024];
  while (::recv(socket, buffer, sizeof(buffer), 0) > 0) {
  }
}

void FakePeer::reset(int socket) {
  const linger now{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

}  // namespace todoke::net::test
