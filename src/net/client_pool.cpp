#include "net/client_pool.hpp"

#include <iterator>

namespace todoke::net {

std::shared_ptr<SocketTransport> ClientPool::borrow(const std::string& origin) {
  drop_expired();
  for (auto it = idle_.begin(); it != idle_.end();) {
    if (it->origin != origin) {
      ++it;
      continue;
    }
    auto transport = std::move(it->transport);
    it = idle_.erase(it);
    if (!transport->stale()) return transport;
    transport->close();
  }
  return nullptr;
}

void ClientPool::give_back(const std::string& origin, std::shared_ptr<SocketTransport> transport) {
  drop_expired();
  idle_.push_front({origin, std::move(transport), std::chrono::steady_clock::now()});
  std::size_t of_origin = 0;
  for (auto it = idle_.begin(); it != idle_.end();) {
    const bool over = it->origin == origin && ++of_origin > per_host_max_;
    if (over) it->transport->close();
    it = over ? idle_.erase(it) : std::next(it);
  }
  while (idle_.size() > total_max_) {
    idle_.back().transport->close();
    idle_.pop_back();
  }
}

void ClientPool::drop_expired() {
  const auto oldest = std::chrono::steady_clock::now() - idle_timeout_;
  while (!idle_.empty() && idle_.back().since < oldest) {
    idle_.back().transport->close();
    idle_.pop_back();
  }
}

}  // namespace todoke::net
