// Fills every order at once and keeps nothing: for measurements of everything else.
#pragma once

#include <utility>

#include "orders/core/adapter.hpp"
#include "orders/core/exec_result.hpp"

namespace todoke::orders {

class NoopAdapter final : public BrokerAdapter {
 public:
  [[nodiscard]] std::string_view name() const override { return "noop"; }

  Task<SendOutcome> send(SendRequest request, Deadline) override {
    SendOutcome outcome;
    outcome.result.status = ExecStatus::ok;
    outcome.result.broker = {"noop", ""};
    outcome.result.fills.push_back(
        {request.order->price.value_or(Decimal(1)), request.order->qty, SystemTime{}});
    sum_fills(outcome.result, *request.order);
    co_return outcome;
  }
  Task<FindOutcome> find(SendRequest, Deadline) override { co_return FindOutcome{}; }
};

}  // namespace todoke::orders
