// The idle connections of an HTTP client.
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "net/socket_transport.hpp"

namespace todoke::net {

class ClientPool {
 public:
  ClientPool(std::size_t per_host_max, std::size_t total_max, std::chrono::milliseconds idle_timeout)
      : per_host_max_(per_host_max), total_max_(total_max), idle_timeout_(idle_timeout) {}

  // A connection that looks alive, the most recently used first; null when there is none.
  std::shared_ptr<SocketTransport> borrow(const std::string& origin);
  // Keeps it for the next request; closes the oldest where there are too many.
  void give_back(const std::string& origin, std::shared_ptr<SocketTransport> transport);
  [[nodiscard]] std::size_t size() const { return idle_.size(); }

 private:
  struct Idle {
    std::string origin;
    std::shared_ptr<SocketTransport> transport;
    SteadyTime since;
  };
  void drop_expired();

  std::size_t per_host_max_;
  std::size_t total_max_;
  std::chrono::milliseconds idle_timeout_;
  std::list<Idle> idle_;  // the newest first
};

}  // namespace todoke::net
