// What an API answers: JSON that nobody keeps, and failures in the one shape of all errors.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/json_value.hpp"
#include "net/message.hpp"

namespace todoke::api {

namespace status {
inline constexpr int kOk = 200;
inline constexpr int kCreated = 201;
inline constexpr int kAccepted = 202;
inline constexpr int kNoContent = 204;
inline constexpr int kNotModified = 304;
inline constexpr int kUnauthorized = 401;
inline constexpr int kPaymentRequired = 402;
inline constexpr int kForbidden = 403;
inline constexpr int kNotFound = 404;
inline constexpr int kConflict = 409;
inline constexpr int kGone = 410;
inline constexpr int kUnprocessable = 422;
inline constexpr int kPreconditionRequired = 428;
inline constexpr int kTooManyRequests = 429;
inline constexpr int kUnavailable = 503;
}  // namespace status

// With Cache-Control: no-store: it is for its caller alone.
net::Response answer(int status, std::string json);
net::Response no_content();

// `details` is JSON text of an object, or empty.
net::Response failure(int status, std::string_view code, std::string_view message,
                      std::string_view details = {});
// 422 VALIDATION_ERROR with the field that is wrong.
net::Response invalid(const BadField& why);
// 429 RATE_LIMITED, or `code`, with Retry-After in whole seconds and at least one.
net::Response too_many(std::chrono::milliseconds retry_after, std::string_view message,
                       std::string_view code = "RATE_LIMITED");
// 503 UNAVAILABLE with Retry-After.
net::Response unavailable(std::string_view message);

// What everybody gets alike, for caches: with ETag, Last-Modified and max-age; 304 for whoever has it already
// (If-None-Match, else If-Modified-Since).
net::Response answer_to_caches(const net::Request& request, std::string json,
                               std::optional<SystemTime> modified, std::chrono::seconds max_age);

}  // namespace todoke::api
