// The blocks of this database (cn_relay.blocks), as this process knows them. Follows the table: woken by
// NOTIFY, and by a look every few seconds. Readers get an immutable set and never wait.
//
// Bounded: BlockSet::kBlocksMax, read a page at a time so that the executor is free in between; what is
// beyond is left out, which the log says.
#pragma once

#include <functional>
#include <memory>

#include "base/metrics.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "relay/block_set.hpp"

namespace todoke::relay {

class BlockBook final : public PeriodicService {
 public:
  BlockBook(const Executor& executor, pg::Pool& pool, pg::Listener& listener, metrics::Registry& registry);

  // Thread-safe.
  [[nodiscard]] std::shared_ptr<const BlockSet> blocks() const { return blocks_.load(); }
  // Called on the executor after every change of blocked addresses. To be set before start().
  void on_addresses(std::function<void()> callback) { on_addresses_ = std::move(callback); }

  Task<void> start() override;
  Task<void> run() override;

 private:
  Task<void> round(RoundCause cause) override;
  Task<BlockSet> read();
  void tell_left_out(bool is_full, std::size_t unreadable);

  pg::Pool& pool_;
  pg::Listener& listener_;
  metrics::Family<metrics::Gauge>& count_;  // todoke_blocks{kind}
  pg::Listener::Subscription subscription_;
  std::function<void()> on_addresses_;
  SharedValue<BlockSet> blocks_;
  bool told_full_ = false;
  std::size_t told_unreadable_ = 0;
};

}  // namespace todoke::relay
