// A listening TCP socket. Survives what peers and the process's own limits do to accept(): a connection that
// broke while it waited is skipped, running out of file descriptors is reported so that the caller can pause.
#pragma once

#include <memory>
#include <vector>

#include "net/ip.hpp"
#include "net/socket.hpp"

namespace todoke::net {

struct AcceptedSocket {
  Fd socket;
  IpBytes ip{};
};

class Listener {
 public:
  // Binds and listens (SO_REUSEADDR; `shares_port`: also SO_REUSEPORT, and every listener that has the port
  // must do so). Throws UserError when it can't.
  Listener(const Executor& executor, const SocketAddress& where, bool shares_port = false);
  ~Listener();

  struct Batch {
    std::vector<AcceptedSocket> sockets;
    bool out_of_files = false;  // no descriptor or no memory left for the next one: wait a little
  };
  // Waits for connections and takes those that wait, at most kAcceptBatchMax. Where some wait already it does
  // not let others on the executor have their turn; that is the caller's. An empty batch that is not out of
  // files: the listener was closed.
  Task<Batch> accept_some();
  void close() noexcept;

  // The address with the port that the system chose.
  [[nodiscard]] const SocketAddress& bound() const { return bound_; }

  // A burst of reconnecting clients fits, and a flood until it is looked at. The kernel caps it at
  // net.core.somaxconn, and where it is full clients try again after a second.
  static constexpr int kBacklog = 16'384;
  static constexpr std::size_t kAcceptBatchMax = 64;

 private:
  struct State;
  std::unique_ptr<State> state_;
  SocketAddress bound_;
};

}  // namespace todoke::net
