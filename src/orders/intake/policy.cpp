#include "orders/intake/policy.hpp"

#include <fmt/format.h>

#include "orders/core/order.hpp"

namespace todoke::orders {
namespace {

constexpr std::string_view kAny = "*";

PolicyRefusal invalid(std::string_view field, std::string message) {
  return {"VALIDATION_ERROR", {std::string(field), std::move(message)}};
}

PolicyRefusal over(std::string_view limit, const Decimal& most) {
  return {"LIMIT_EXCEEDED", {std::string(limit), fmt::format("is {}", most.text())}};
}

}  // namespace

Expected<AmountTable> AmountTable::parse(std::span<const std::string> entries, bool allow_any) {
  AmountTable table;
  for (const auto& entry : entries) {
    const auto equals = entry.find('=');
    const auto name = entry.substr(0, equals);
    if (equals == std::string::npos || name.empty() || (name == kAny && !allow_any)) {
      return refuse(fmt::format("'{}' is no INSTRUMENT=AMOUNT", entry));
    }
    if (name != kAny && !is_instrument(name)) return refuse(fmt::format("'{}' {}", name, kInstrumentRule));
    const auto amount = Decimal::parse(std::string_view(entry).substr(equals + 1));
    if (!amount) return refuse(fmt::format("'{}': the amount {}", entry, amount.error().message));
    if (!amount->is_positive()) return refuse(fmt::format("'{}': the amount must be more than 0", entry));
    if (!table.amounts_.emplace(name, *amount).second) return refuse(fmt::format("{} is there twice", name));
  }
  return table;
}

const Decimal* AmountTable::find(const std::string& instrument) const {
  auto found = amounts_.find(instrument);
  if (found == amounts_.end()) found = amounts_.find(std::string(kAny));
  return found == amounts_.end() ? nullptr : &found->second;
}

std::optional<PolicyRefusal> Policy::check(const Order& order) const {
  if (!instruments.empty() && !instruments.contains(order.instrument)) {
    return invalid("instrument", "is not traded here");
  }
  if (const auto* step = lot_steps.find(order.instrument);
      step != nullptr && !order.qty.is_multiple_of(*step)) {
    return invalid("qty", fmt::format("must be a multiple of {}", step->text()));
  }
  if (const auto* most = qty_max.find(order.instrument); most != nullptr && order.qty > *most) {
    return over("orders.limits.qty_max", *most);
  }
  const auto* most = notional_max.find(order.instrument);
  if (most != nullptr && order.price && order.qty * *order.price > *most)
    return over("orders.limits.notional_max", *most);
  return std::nullopt;
}

}  // namespace todoke::orders
