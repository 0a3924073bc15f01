// The ClOrdID under which an order goes to a FIX broker: a function of its key alone, so that every try of an
// order has the same one.
//
// The key itself where it has at most `length_max` characters, all of them of A-Z, a-z, 0-9 and `-`; else the
// first `length_max` characters of the base32 text (RFC 4648, upper case, no padding) of its SHA-256.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace todoke::orders {

// 80 bits of the hash: below that, two keys out of millions could meet.
inline constexpr std::size_t kClOrdIdLengthMin = 16;
inline constexpr std::size_t kClOrdIdLengthMax = 64;

std::string cl_ord_id(std::string_view key, std::size_t length_max);

}  // namespace todoke::orders
