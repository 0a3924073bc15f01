// ExecResult as JSON, as the ledger keeps it and clients see it, and its digest.
#pragma once

#include <string>
#include <string_view>

#include "orders/core/exec_result.hpp"
#include "orders/core/json_value.hpp"

namespace todoke::orders {

// Members in the order of the contract; what there is none of is null. Times in UTC with microseconds.
std::string to_json(const ExecResult& result);
// What to_json wrote, or an operator by hand: members that are missing have their defaults, unknown ones are
// refused.
Checked<ExecResult> parse_exec_result(std::string_view json);

// What the digest covers, in the canonical form of orders (canonical.hpp): status, order_id, instrument,
// side, executed_qty, avg_price, fills, reason_code; what there is none of is left out.
std::string canonical_json(const ExecResult& result);
std::string result_digest(const ExecResult& result);

}  // namespace todoke::orders
