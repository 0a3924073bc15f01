// Sums over the fills of an order, as ExecResult has them.
#pragma once

#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {

// Sets executed_qty, cost, avg_price and slippage from the fills, and the warning UNFILLED for an order that
// took none although it does not wait (IOC, FOK).
void sum_fills(ExecResult& result, const Order& order);

}  // namespace todoke::orders
