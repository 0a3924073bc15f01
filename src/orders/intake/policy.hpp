// The rules of an installation, beyond those that hold for all orders: instruments, lot steps, the largest
// order.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "orders/core/json_value.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {

struct PolicyRefusal {
  std::string_view code;  // VALIDATION_ERROR or LIMIT_EXCEEDED
  BadField why;
};

// Amounts by instrument, from texts such as `BTC-USD=0.001`. `*` stands for every instrument without one of
// its own, where that is allowed.
class AmountTable {
 public:
  static Expected<AmountTable> parse(std::span<const std::string> entries, bool allow_any);
  [[nodiscard]] const Decimal* find(const std::string& instrument) const;

 private:
  std::map<std::string, Decimal> amounts_;
};

struct Policy {
  std::set<std::string> instruments;  // empty: any
  AmountTable lot_steps;
  AmountTable qty_max;
  // An order at the market has no price and passes: qty_max bounds it.
  AmountTable notional_max;

  // Nothing: allowed.
  [[nodiscard]] std::optional<PolicyRefusal> check(const Order& order) const;
};

}  // namespace todoke::orders
