// Reads an order from JSON: the body of a request, or what is stored. Checks every rule that holds for all
// orders; what an installation allows beyond that is policy.hpp. The first offence is named: first JSON
// itself, then members that are unknown, then the fields in the order of the reference.
#pragma once

#include <cstddef>
#include <string_view>

#include "orders/core/json_value.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {

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
