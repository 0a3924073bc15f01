// Inside this room: what the order API answers, each with the word under which it is counted.
#pragma once

#include <chrono>
#include <span>
#include <string_view>

#include "net/message.hpp"
#include "orders/core/json_value.hpp"
#include "orders/intake/intake_plan.hpp"

namespace todoke::orders {

struct Answer {
  net::Response response;
  std::string_view outcome;  // accepted, replayed, found, or the code of an error
};

// Every word that an Answer to a post may have.
std::span<const std::string_view> post_outcomes();

// `code` is a literal.
Answer refused(int status, std::string_view code, const BadField& why);
Answer refused(int status, std::string_view code, std::string_view message);
// With Retry-After, in whole seconds and at least one.
Answer refused_for(std::chrono::milliseconds after, int status, std::string_view code,
                   std::string_view message);
Answer unauthorized();
Answer unavailable();

// 200 to a post of a known key, or 409 when it is another order.
Answer known_key(const OrderState& state, std::string_view request_digest);
Answer told(const IntakeOutcome& outcome);
Answer found(const OrderState& state);

}  // namespace todoke::orders
