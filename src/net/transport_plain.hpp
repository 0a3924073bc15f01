// Transport over plain TCP. Writing tries one gathered sendmsg at once and waits only when the socket is
// full: a small answer costs one system call and no turn of the event loop.
#pragma once

#include "net/socket.hpp"
#include "net/socket_transport.hpp"

namespace todoke::net {

// `socket` must be connected. It is made non-blocking and gets TCP_NODELAY.
std::shared_ptr<SocketTransport> make_plain_transport(const Executor& executor, Fd socket,
                                                      std::string peer_ip);

}  // namespace todoke::net
