// Waiting for an order to be settled. All waits of a process share one statement, which runs when somebody
// says that orders were settled (wake() in this process, NOTIFY orders_settled from others) and every
// kLookEvery besides. Bounded: beyond `waiters_max` waits, and when the node stops, a wait ends at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/metrics.hpp"
#include "base/service.hpp"
#include "orders/intake/order_state.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

class OrderWatch final : public Service {
 public:
  static constexpr std::chrono::milliseconds kLookEvery{100};
  static constexpr std::chrono::milliseconds kTellEvery{50};
  static constexpr std::chrono::milliseconds kWaitMax{30'000};
  // How long `?wait=` asks to wait (5s, 250ms, 5), kWaitMax at most; nothing when it can't be read.
  static std::optional<std::chrono::milliseconds> asked_wait(std::string_view text);

  OrderWatch(const Executor& executor, std::size_t waiters_max, pg::Pool& pool, pg::Listener& listener,
             metrics::Registry& registry);
  ~OrderWatch() override;

  // The state once it is settled; nothing when the time was up or there was no room to wait. On any executor
  // that runs one handler at a time.
  Task<std::optional<OrderState>> wait_settled(std::string key, std::chrono::milliseconds most);

  // Orders were settled. Thread-safe. Other processes are told, at most every kTellEvery.
  void wake();

  [[nodiscard]] std::string_view name() const override { return "orders_watch"; }
  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;
  // Ends every wait. To be called before the listeners stop, which wait for their requests.
  void stop() override;

 private:
  struct Waiter;
  Task<void> look();
  Task<void> tell_others();
  [[nodiscard]] std::chrono::milliseconds pause() const;
  [[nodiscard]] std::vector<std::string> watched() const;
  void leave(const std::shared_ptr<Waiter>& waiter);

  const std::size_t waiters_max_;
  pg::Pool& pool_;
  pg::Listener& listener_;
  Signal wake_;
  pg::Listener::Subscription settled_elsewhere_;
  std::atomic<bool> settled_here_ = false;  // and not told yet
  SteadyTime told_at_{};
  metrics::Gauge& waiting_;

  mutable std::mutex mutex_;
  bool stopped_ = false;
  std::multimap<std::string, std::shared_ptr<Waiter>> waiters_;
};

}  // namespace todoke::orders
