#include "orders/core/reasons.hpp"

#include <algorithm>
#include <array>

#include "orders/core/exec_result.hpp"

namespace todoke::orders {

int http_status_of(std::string_view reason_code) {
  struct Mapped {
    std::string_view code;
    int status;
  };
  static constexpr std::array kMapped{
      Mapped{"", 200},
      Mapped{reason::kBrokerTimeout, 504},
      Mapped{reason::kBrokerDown, 503},
      Mapped{reason::kBrokerRejected, 409},
      Mapped{reason::kIdempotencyConflict, 409},
      Mapped{reason::kAbortedByOperator, 409},
      Mapped{reason::kOrderExpired, 410},
      Mapped{reason::kValidationError, 422},
      Mapped{reason::kLeaseExpired, 504},
  };
  const auto* const found =
      std::find_if(kMapped.begin(), kMapped.end(), [&](const Mapped& m) { return m.code == reason_code; });
  return found == kMapped.end() ? 500 : found->status;
}

bool is_known_reason(std::string_view reason_code) {
  static constexpr std::array kKnown{reason::kBrokerTimeout,  reason::kBrokerDown,
                                     reason::kBrokerRejected, reason::kValidationError,
                                     reason::kInternalError,  reason::kOrderExpired};
  return std::find(kKnown.begin(), kKnown.end(), reason_code) != kKnown.end();
}

bool is_unreachable(std::string_view reason_code) {
  return reason_code == reason::kBrokerTimeout || reason_code == reason::kBrokerDown;
}

bool is_transient(std::string_view reason_code) {
  return is_unreachable(reason_code) || reason_code == reason::kInternalError;
}

}  // namespace todoke::orders
