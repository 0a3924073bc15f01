// The result of an order at the broker. A plain value: adapters fill it, the worker completes it (ids,
// times), the ledger keeps its JSON, which clients see. Amounts are exact decimals. With it: the reason codes
// and their meaning, sums over fills, JSON and digest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "orders/core/decimal.hpp"
#include "orders/core/json_value.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {

enum class ExecStatus { ok, error };

// Reason codes of the contract, and of the worker itself.
namespace reason {
inline constexpr std::string_view kBrokerTimeout = "BROKER_TIMEOUT";
inline constexpr std::string_view kBrokerDown = "BROKER_DOWN";
inline constexpr std::string_view kBrokerRejected = "BROKER_REJECTED";
inline constexpr std::string_view kValidationError = "VALIDATION_ERROR";
inline constexpr std::string_view kInternalError = "INTERNAL_ERROR";
inline constexpr std::string_view kIdempotencyConflict = "IDEMPOTENCY_CONFLICT";
inline constexpr std::string_view kLeaseExpired = "LEASE_EXPIRED";
inline constexpr std::string_view kOrderExpired = "ORDER_EXPIRED";
inline constexpr std::string_view kAbortedByOperator = "ABORTED_BY_OPERATOR";
}  // namespace reason

namespace warning {
inline constexpr std::string_view kInDoubt = "IN_DOUBT";
inline constexpr std::string_view kWorking = "WORKING";
inline constexpr std::string_view kUnfilled = "UNFILLED";
inline constexpr std::string_view kUnreadable = "UNREADABLE";
inline constexpr std::string_view kRiskNotEnforced = "RISK_NOT_ENFORCED";
}  // namespace warning

struct Fill {
  Decimal px;
  Decimal qty;
  SystemTime ts{};
  bool operator==(const Fill&) const = default;
};

struct BrokerRef {
  std::string name;  // of the adapter
  std::string order_ref;
  bool operator==(const BrokerRef&) const = default;
};

struct LatencyMs {
  std::int64_t queue = 0;       // from acceptance to the try that settled it
  std::int64_t broker_rtt = 0;  // of that try
  std::int64_t total = 0;
  bool operator==(const LatencyMs&) const = default;
};

struct ExecResult {
  ExecStatus status = ExecStatus::error;
  std::string order_id;
  std::string instrument;
  std::string side;
  std::optional<std::string> requested_at;  // as the client wrote it
  SystemTime completed_at{};
  std::optional<std::string> trace_id;
  std::string idempotency_key;
  std::vector<Fill> fills;
  std::optional<Decimal> avg_price;  // none without a fill
  Decimal executed_qty;              // the sum of the fills
  Decimal cost;                      // the sum of px * qty of the fills
  std::optional<Decimal> slippage;   // avg_price against the order's price, in the disadvantage's direction
  BrokerRef broker;
  LatencyMs latency_ms;
  std::string reason_code;  // empty: none
  std::vector<std::string> warnings;
};

// Members in the order of the contract; absent ones are null. Times in UTC with microseconds.
std::string to_json(const ExecResult& result);
// Reads the text of to_json, or one that an operator wrote by hand: missing members get their defaults,
// unknown ones are refused.
Checked<ExecResult> parse_exec_result(std::string_view json);

// The digest covers, in the canonical form of orders (canonical.hpp), status, order_id, instrument, side,
// executed_qty, avg_price, fills and reason_code; absent ones are left out.
std::string canonical_json(const ExecResult& result);
std::string result_digest(const ExecResult& result);

// Sets executed_qty, cost, avg_price and slippage from the fills, and the warning UNFILLED for an order that
// took none although it does not wait (IOC, FOK).
void sum_fills(ExecResult& result, const Order& order);

// 200 for an empty code.
int http_status_of(std::string_view reason_code);

// One that an order can end with at a broker.
bool is_known_reason(std::string_view reason_code);

// Whether the broker was out of reach or gave no answer: another try may help, and the breaker counts it.
bool is_unreachable(std::string_view reason_code);

// Another try may help. BROKER_REJECTED and VALIDATION_ERROR are final.
bool is_transient(std::string_view reason_code);

}  // namespace todoke::orders
