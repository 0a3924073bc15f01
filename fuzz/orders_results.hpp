// For targets that make results of brokers' answers: an order, and what holds of every result of it.
#pragma once

#include <string>

#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"
#include "require.hpp"

namespace todoke::fuzz {

inline orders::Order order_of(orders::TimeInForce time_in_force) {
  orders::Order order;
  order.idempotency_key = "key-00001";
  order.instrument = "BTC-USD";
  order.qty = orders::Decimal(2);
  order.price = orders::Decimal(100);
  order.time_in_force = time_in_force;
  return order;
}

// The stored text can be read again, and gives the same result.
inline void require_kept(const orders::ExecResult& result) {
  const auto json = orders::to_json(result);
  require(json.find("\\u0000") == std::string::npos);  // the database has no such character
  const auto again = orders::parse_exec_result(json);
  require(again.has_value());
  require(orders::result_digest(*again) == orders::result_digest(result));
  const auto once_more = orders::parse_exec_result(orders::to_json(*again));
  require(once_more && orders::to_json(*once_more) == orders::to_json(*again));
}

}  // namespace todoke::fuzz
