// An order as a value: a client's request that has passed every rule; text is in NFC. Read from JSON: the
// body of a request, or the stored document. This file checks the rules that hold for all orders;
// intake/policy.hpp has those of an installation. A refusal names the first offence: in the JSON itself, then
// unknown members, then the fields in the order of the reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orders/core/decimal.hpp"
#include "orders/core/json_value.hpp"

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

inline constexpr std::size_t kKeyCharactersMin = 8;
inline constexpr std::size_t kKeyCharactersMax = 64;
inline constexpr std::size_t kTagsMax = 8;
inline constexpr std::size_t kTagCharactersMax = 32;
// Of order_id and trace_id: longer than the ids of any system that we know of.
inline constexpr std::size_t kIdCharactersMax = 128;

Checked<Order> parse_order(std::string_view json);

inline constexpr std::string_view kInstrumentRule =
    "must be 3 to 20 characters of A-Z, 0-9, dot, underscore and hyphen";
bool is_instrument(std::string_view text);
// 8 to 64 printable ASCII characters without space.
bool is_idempotency_key(std::string_view key);

}  // namespace todoke::orders
