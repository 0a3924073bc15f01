// What the intake must know before it takes an order and what others may change at any time: halts that
// refuse new orders, and how many open orders are in doubt. Read twice a second and whenever a halt is
// changed, so that a halt is in force within a second. While the database can't be read the last answer
// stands; nothing can be taken then anyway.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/service.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

struct GateOptions {
  std::string adapter;            // where this node's orders go
  std::int64_t in_doubt_max = 0;  // 0: no limit
};

class IntakeGate final : public Service {
 public:
  IntakeGate(const Executor& executor, GateOptions options, pg::Pool& pool, pg::Listener& listener);

  // Both thread-safe.
  [[nodiscard]] bool is_halted(std::string_view instrument) const;
  [[nodiscard]] bool has_too_much_doubt() const;

  [[nodiscard]] std::string_view name() const override { return "orders_gate"; }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

 private:
  Task<void> read();

  const GateOptions options_;
  pg::Pool& pool_;
  pg::Listener& listener_;
  Signal wake_;
  bool stop_asked_ = false;
  pg::Listener::Subscription halts_changed_;
  std::atomic<std::int64_t> in_doubt_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> halted_;  // instruments; * for all
};

}  // namespace todoke::orders
