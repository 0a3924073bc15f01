// Percent-encoding of URLs (RFC 3986): a wrong escape, an escaped NUL and bytes that are no UTF-8 are
// refused, because what comes out is stored and logged as text.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace todoke {

// More pairs in a query string than this are refused.
inline constexpr std::size_t kQueryPairsMax = 128;

Expected<std::string> percent_decode(std::string_view text);

// Everything but letters, digits and - . _ ~ is escaped.
std::string percent_encode(std::string_view text);

// a=1&b=x+y, decoded, in order. `+` is a space. A name without `=` has an empty value.
Expected<std::vector<std::pair<std::string, std::string>>> parse_query(std::string_view query);

}  // namespace todoke
