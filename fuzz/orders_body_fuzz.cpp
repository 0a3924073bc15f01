// Any bytes as the body of POST /do/order: never a crash, never a slow answer; what is accepted has one
// canonical text, and what is stored of it is the same order again.
#include <string_view>

#include "orders/core/canonical.hpp"
#include "orders/core/order.hpp"
#include "require.hpp"

namespace {

using namespace todoke::orders;
using todoke::fuzz::require;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto order = parse_order(text);
  if (!order) {
    require(!order.error().message.empty());  // the field can be empty: a member may have that name
    return 0;
  }
  const auto again = parse_order(stored_json(*order));
  require(again.has_value());
  require(*again == *order);
  require(canonical_json(*again) == canonical_json(*order));
  require(order->qty.is_positive() && Decimal::parse(order->qty.text()) == order->qty);
  return 0;
}
