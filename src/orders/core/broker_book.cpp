#include "orders/core/broker_book.hpp"

#include <utility>

namespace todoke::orders {

Task<BrokerBook::Answers> AdapterBook::ask(std::vector<AskedOrder> orders) {
  Answers answers;
  for (const auto& asked : orders) {
    SendRequest request;
    request.order = &asked.order;
    request.outbox_id = asked.outbox_id;
    request.idempotency_key = asked.idempotency_key;
    request.broker_id = adapter_.broker_id(asked.idempotency_key);
    auto outcome = co_await adapter_.find(std::move(request), Deadline::after(limit_));
    answers.of.emplace_back(std::move(outcome));
  }
  co_return answers;
}

}  // namespace todoke::orders
