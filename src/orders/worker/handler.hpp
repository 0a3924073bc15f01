// Works on one order: checks it, looks it up at the broker where it is in doubt, sends it once, judges the
// answer.
#pragma once

#include <chrono>
#include <string>

#include "base/clock.hpp"
#include "base/trace.hpp"
#include "orders/core/adapter.hpp"
#include "orders/core/halts.hpp"
#include "orders/worker/metrics.hpp"
#include "orders/worker/order_job.hpp"
#include "queue/decision.hpp"
#include "queue/port.hpp"

namespace todoke::orders {

struct MaxAge {
  // 0: never too old.
  std::chrono::milliseconds ioc{0};
  std::chrono::milliseconds fok{0};
  std::chrono::milliseconds gtc{0};
  [[nodiscard]] std::chrono::milliseconds of(TimeInForce time_in_force) const;
};

struct HandlerOptions {
  int attempts_max = 6;
  std::chrono::milliseconds broker_timeout{2'500};
  MaxAge max_age;
  bool strict_risk = false;  // orders.risk = strict
};

class OrderHandler final : public queue::Handler {
 public:
  // Everything outlives the handler.
  OrderHandler(HandlerOptions options, BrokerAdapter& adapter, Halts& halts, const Clock& clock,
               Tracer& tracer, OrderMetrics& metrics);

  Task<Ended> handle(queue::Job& job, const queue::Hold& hold) override;
  void on_verdict(queue::Job& job) override;

 private:
  Task<Ended> handle_order(OrderJob& job, const queue::Hold& hold, Span& span);
  // The outcome by the broker's answer; nothing: the broker has no such order.
  Task<std::optional<Ended>> look_up(OrderJob& job);
  Task<Ended> send(OrderJob& job, Span& span);
  // The broker says that it has an order of this key already: looks that up, and never ends as a refusal.
  Task<Ended> end_duplicate(OrderJob& job, SendOutcome outcome);
  Task<bool> is_halted_now(const OrderJob& job);
  // Ends with the broker's answer. `doubt_ended`: it answers a look-up, and so covers the earlier tries as
  // well.
  Ended end_with(OrderJob& job, SendOutcome outcome, bool doubt_ended) const;
  Ended fail(OrderJob& job, std::string_view code, std::string message, queue::Outcome outcome) const;
  [[nodiscard]] bool is_too_old(const OrderJob& job) const;
  [[nodiscard]] SendRequest request(const OrderJob& job) const;
  void complete_result(OrderJob& job) const;

  HandlerOptions options_;
  BrokerAdapter& adapter_;
  Halts& halts_;
  const Clock& clock_;
  Tracer& tracer_;
  OrderMetrics& metrics_;
};

}  // namespace todoke::orders
