// The state of one order at a FIX broker, from its reports. Pure: the same reports give the same state, so it
// can be computed anew whenever another one comes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orders/brokers/fix/engine/session.hpp"
#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {

struct FixView {
  enum class State {
    unknown,   // no report yet
    pending,   // received, not taken (PendingNew)
    working,   // taken, may fill further
    ended,     // taken, and nothing more comes
    rejected,  // never taken
  };
  State state = State::unknown;
  bool is_duplicate = false;  // an order was rejected because its ClOrdID is known
  bool is_unknown = false;    // the broker said that it has no such order (answer to a status request)
  std::string order_ref;
  std::string reject_reason;  // OrdRejReason
  std::vector<Fill> fills;
  bool is_corrected = false;   // a fill was corrected or busted: there may be less than before
  bool is_unreadable = false;  // a fill had no amount that could be read: its report was left out

  [[nodiscard]] bool is_acknowledged() const { return state == State::working || state == State::ended; }
};

// Whether it is the answer to a status request.
bool is_status(const fix::Report& report);

// The answer of a broker that does not know the order.
fix::Report unknown_order(std::string cl_ord_id);

// `reports` in the order in which they came; those with an ExecID that was there before are left out.
//
// A fill is a report of a trade. Corrections and busts (ExecType G, H) change the fill that they refer to.
// Where the broker counts more (CumQty) than the fills add up to (reports that this side never got), the rest
// is one fill at the price that gives the broker's AvgPx, as exactly as that is given.
FixView view_of(const std::vector<fix::Report>& reports, TimeInForce time_in_force);

// Only for a view that is acknowledged or rejected. `ok` for one that is acknowledged: with the fills so far,
// WORKING where more may come, UNFILLED where it ended without any.
ExecResult result_of(const FixView& view, const Order& order);

// A number as FIX writes it: leading zeros, `.5` and `5.` are allowed, an exponent is not.
std::optional<Decimal> fix_decimal(std::string_view text);
// 20250824-03:34:56 with any number of digits of a second after a point.
std::optional<SystemTime> fix_time(std::string_view text);

}  // namespace todoke::orders
