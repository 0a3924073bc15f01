#include "orders/intake/api_answers.hpp"

#include <algorithm>
#include <array>

#include "base/json_writer.hpp"

namespace todoke::orders {
namespace {

constexpr std::chrono::seconds kRetryAfter(1);

net::Response state_response(int status, const OrderState& state) {
  auto response = net::json_response(status, to_json(state));
  response.headers.set("Cache-Control", "no-store");
  return response;
}

Answer replayed(const OrderState& state) {
  Answer answer{state_response(200, state), "replayed"};
  answer.response.headers.set("Idempotent-Replayed", "true");
  return answer;
}

Answer conflict() {
  return refused(409, "IDEMPOTENCY_CONFLICT",
                 BadField{"idempotency_key", "was used before, for another order"});
}

}  // namespace

std::span<const std::string_view> post_outcomes() {
  static constexpr std::array<std::string_view, 13> kOutcomes{
      "accepted",         "replayed",       "IDEMPOTENCY_CONFLICT", "IDEMPOTENCY_MISMATCH",
      "VALIDATION_ERROR", "LIMIT_EXCEEDED", "RATE_LIMITED",         "UNAUTHORIZED",
      "HALTED",           "UNAVAILABLE",    "OUTCOME_UNKNOWN",      "STORAGE_FULL",
      "INTERNAL"};
  return kOutcomes;
}

Answer refused(int status, std::string_view code, const BadField& why) {
  JsonWriter details;
  details.begin_object().member("field", why.field).end_object();
  return {net::error_response(status, code, why.text(), details.text()), code};
}

Answer refused(int status, std::string_view code, std::string_view message) {
  return {net::error_response(status, code, message), code};
}

Answer refused_for(std::chrono::milliseconds after, int status, std::string_view code,
                   std::string_view message) {
  auto answer = refused(status, code, message);
  const auto seconds = std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::seconds>(after).count());
  answer.response.headers.set("Retry-After", std::to_string(seconds));
  return answer;
}

Answer unauthorized() {
  auto answer = refused(401, "UNAUTHORIZED", "a bearer token that is known here is needed");
  answer.response.headers.set("WWW-Authenticate", "Bearer");
  return answer;
}

Answer unavailable() {
  return refused_for(kRetryAfter, 503, "UNAVAILABLE", "the database can't be asked now");
}

Answer known_key(const OrderState& state, std::string_view request_digest) {
  return state.request_digest == request_digest ? replayed(state) : conflict();
}

Answer told(const IntakeOutcome& outcome) {
  switch (outcome.verdict) {
    case IntakeVerdict::accepted:
      return {state_response(201, outcome.state), "accepted"};
    case IntakeVerdict::replayed:
      return replayed(outcome.state);
    case IntakeVerdict::conflict:
      return conflict();
    case IntakeVerdict::unavailable:
      return unavailable();
    case IntakeVerdict::unknown:
      return refused_for(kRetryAfter, 503, "OUTCOME_UNKNOWN",
                         "the order may have been accepted: post it again with the same key");
    case IntakeVerdict::failed:
      break;
  }
  return refused(500, "INTERNAL", "internal error");
}

Answer found(const OrderState& state) {
  return {state_response(200, state), "found"};
}

}  // namespace todoke::orders
