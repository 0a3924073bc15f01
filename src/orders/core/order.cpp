#include "orders/core/order.hpp"

namespace todoke::orders {

std::string_view to_string(Side side) {
  return side == Side::buy ? "BUY" : "SELL";
}

std::string_view to_string(TimeInForce time_in_force) {
  switch (time_in_force) {
    case TimeInForce::ioc:
      return "IOC";
    case TimeInForce::fok:
      return "FOK";
    case TimeInForce::gtc:
      return "GTC";
  }
  return "IOC";
}

}  // namespace todoke::orders
