// An order as a value: what a client asks for, after every rule has been checked. Text is in NFC.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orders/core/decimal.hpp"

namespace todoke::orders {

enum class Side : std::uint8_t { buy, sell };
enum class TimeInForce : std::uint8_t { ioc, fok, gtc };

std::string_view to_string(Side side);                  // BUY, SELL
std::string_view to_string(TimeInForce time_in_force);  // IOC, FOK, GTC

// Each is a number of zero or more.
struct RiskConstraints {
  std::optional<Decimal> max_dd;
  std::optional<Decimal> max_consecutive_loss;
  std::optional<Decimal> max_spread;
  bool operator==(const RiskConstraints&) const = default;
};

struct Order {
  std::string idempotency_key;
  std::string instrument;
  Side side = Side::buy;
  Decimal qty;
  std::optional<Decimal> price;  // nothing: at the market
  TimeInForce time_in_force = TimeInForce::ioc;
  std::optional<std::string> order_id;
  std::optional<std::string> requested_at;  // RFC 3339, as the client wrote it
  std::optional<std::vector<std::string>> tags;
  std::optional<RiskConstraints> risk_constraints;
  std::optional<std::string> trace_id;
  bool operator==(const Order&) const = default;
};

}  // namespace todoke::orders
