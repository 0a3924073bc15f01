#include "orders/core/fills.hpp"

namespace todoke::orders {

void sum_fills(ExecResult& result, const Order& order) {
  result.executed_qty = {};
  result.cost = {};
  result.avg_price.reset();
  result.slippage.reset();
  for (const auto& fill : result.fills) {
    result.executed_qty += fill.qty;
    result.cost += fill.px * fill.qty;
  }
  result.cost = result.cost.rounded();
  if (result.executed_qty.is_zero()) {
    if (order.time_in_force != TimeInForce::gtc) result.warnings.emplace_back(warning::kUnfilled);
    return;
  }
  result.avg_price = result.cost.divided_by(result.executed_qty);
  if (!order.price) return;
  result.slippage =
      order.side == Side::buy ? *result.avg_price - *order.price : *order.price - *result.avg_price;
}

}  // namespace todoke::orders
