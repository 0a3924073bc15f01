// What a Transport over a socket can tell beyond reading and writing; for the HTTP client.
#pragma once

#include "net/transport.hpp"

namespace todoke::net {

class SocketTransport : public Transport {
 public:
  // Bytes that may have reached the peer. 0 after a failed write: the peer has seen nothing of it.
  [[nodiscard]] virtual std::uint64_t bytes_sent() const = 0;
  // Whether an idle connection can't be used again: the peer has closed it or has sent what nobody asked for.
  // Not while something is read or written.
  [[nodiscard]] virtual bool stale() = 0;
};

}  // namespace todoke::net
