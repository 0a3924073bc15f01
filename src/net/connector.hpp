// Outgoing TCP connections.
#pragma once

#include "base/clock.hpp"
#include "net/socket.hpp"

namespace todoke::net {

struct ConnectedSocket {
  Fd socket;
  std::string peer_ip;
};

// Resolves the name and tries its addresses one after the other; each gets an equal share of the time that is
// left. Throws NetError with the last reason.
Task<ConnectedSocket> connect_tcp(HostPort where, Deadline deadline);

}  // namespace todoke::net
