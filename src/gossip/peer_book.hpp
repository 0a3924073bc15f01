// The nodes to dial: those of the key gossip.peers and those of the table gossip_peers, which it follows,
// woken by NOTIFY and by a look now and then. Readers get an immutable list and never wait.
//
// Bounded: `kPeersMax` of the table, the oldest.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/config.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "gossip/peer.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::gossip {

class PeerBook final : public PeriodicService {
 public:
  // More make no better net: the library keeps a handful of neighbours for each topic.
  static constexpr std::int32_t kPeersMax = 200;

  using Peers = std::vector<Peer>;

  PeerBook(const Executor& executor, const Config& config, pg::Pool& pool, pg::Listener& listener,
           metrics::Registry& registry);

  // Each node once; of several addresses that of the key.
  [[nodiscard]] std::shared_ptr<const Peers> peers() const { return peers_.load(); }
  // Called on the executor after every change. To be set before start().
  void on_change(std::function<void()> callback) { on_change_ = std::move(callback); }
  // From anywhere.
  void change(const Config& config);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;

 private:
  Task<void> round(RoundCause cause) override;

  pg::Pool& pool_;
  pg::Listener& listener_;
  pg::Listener::Subscription subscription_;
  std::function<void()> on_change_ = [] {};
  SharedValue<Peers> configured_;
  SharedValue<Peers> peers_;
};

}  // namespace todoke::gossip
