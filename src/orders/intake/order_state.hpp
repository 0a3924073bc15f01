// The state of an order, the one body of 201, 200 and GET; and the clients that wait for it to change
// (?wait=).
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "pg/connection.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

struct OrderState {
  std::string idempotency_key;
  std::string request_digest;
  std::string status = "pending";  // the outbox's
  std::int32_t attempts = 0;
  std::optional<SystemTime> next_run_at;
  std::optional<std::string> last_error_code;
  bool in_doubt = false;
  std::optional<std::int32_t> http_status;  // the ledger's
  std::optional<std::string> result;        // ExecResult, the bytes that were stored

  // Nothing will change any more, unless an operator queues it again.
  [[nodiscard]] bool is_settled() const { return status == "succeeded" || status == "aborted"; }
};

std::string to_json(const OrderState& state);

// Those of `keys` that are known, in any order.
Task<std::vector<OrderState>> read_states(pg::Connection& connection, std::span<const std::string> keys,
                                          Deadline deadline);

// Waits for orders to be settled. All waits of a process share one statement, which runs when orders were
// settled (wake() in this process, NOTIFY orders_settled from others) and every kLookEvery besides. Bounded:
// beyond `waiters_max` waits, and when the node stops, a wait ends at once.
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

  // Orders were settled. Thread-safe. Tells other processes, at most every kTellEvery.
  void wake();

  [[nodiscard]] std::string_view name() const override { return "orders_watch"; }
  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;
  // Ends every wait. To be called before the listeners stop, which wait for their requests.
  void stop() override;

 private:
  struct Waiter;
  Task<void> round();
  Task<void> tell_waiters();
  Task<void> tell_others();
  [[nodiscard]] std::chrono::milliseconds pause() const;
  [[nodiscard]] std::vector<std::string> watched() const;
  void stop_waiting(const std::shared_ptr<Waiter>& waiter);

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
