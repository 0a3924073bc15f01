#include "orders/core/adapter.hpp"

#include <utility>

namespace todoke::orders {

SendOutcome failure(std::string_view code, std::string message, bool in_doubt) {
  SendOutcome outcome;
  outcome.result.status = ExecStatus::error;
  outcome.result.reason_code = code;
  outcome.message = std::move(message);
  outcome.in_doubt = in_doubt;
  return outcome;
}

SendOutcome held_back() {
  SendOutcome outcome;
  outcome.held_back = true;
  return outcome;
}

FindOutcome unknown(std::string why) {
  FindOutcome outcome;
  outcome.message = std::move(why);
  return outcome;
}

FindOutcome not_asked(std::string why) {
  auto outcome = unknown(std::move(why));
  outcome.was_asked = false;
  return outcome;
}

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
