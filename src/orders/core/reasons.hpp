// Reason codes as the ledger's http_status, and what they mean for another try.
#pragma once

#include <string_view>

namespace todoke::orders {

// 200 for an empty code.
int http_status_of(std::string_view reason_code);

// One that an order can end with at a broker.
bool is_known_reason(std::string_view reason_code);

// The broker could not be reached or gave no answer: another try may help, and the breaker counts it.
bool is_unreachable(std::string_view reason_code);

// Another try may help. BROKER_REJECTED and VALIDATION_ERROR are final.
bool is_transient(std::string_view reason_code);

}  // namespace todoke::orders
