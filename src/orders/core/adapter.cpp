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

}  // namespace todoke::orders
