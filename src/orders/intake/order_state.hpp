// Where an order stands: the one body of 201, 200 and GET.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "pg/connection.hpp"

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

}  // namespace todoke::orders
