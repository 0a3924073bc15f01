// Whether a caller may have a result, and pays for it: the subscription that opens it (403
// SUBSCRIPTION_REQUIRED) and the plan's quota (402 QUOTA_EXCEEDED), both in one statement.
//
// A request is counted once for its X-Request-Id and content: one that is sent again with both unchanged
// costs nothing. Without the header each request is its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/route.hpp"
#include "users/desk.hpp"

namespace todoke::users {

namespace metric {
inline constexpr std::string_view kSearch = "index.search_requests";
inline constexpr std::string_view kTrending = "index.trending_requests";
inline constexpr std::string_view kTrust = "trust.requests";
inline constexpr std::string_view kReports = "moderation.report_submits";
}  // namespace metric

namespace service {
inline constexpr std::string_view kIndex = "index";
inline constexpr std::string_view kModeration = "moderation";
inline constexpr std::string_view kTrust = "trust";
}  // namespace service

// Nothing: the caller may. `content`: what the request asks for, beside its method; that of a GET is its
// target.
using Refusal = std::optional<net::Response>;
Task<Refusal> spend_for_topic(const Desk& desk, const api::Call& call, std::string topic,
                              std::string_view service, std::string_view metric);
Task<Refusal> spend_for_service(const Desk& desk, const api::Call& call, std::string_view service,
                                std::string_view metric);
Task<Refusal> spend(const Desk& desk, const api::Call& call, std::string_view metric, std::string content);
// Asks for the subscription alone.
Task<Refusal> check_service(const Desk& desk, const api::Call& call, std::vector<std::string> topics,
                            std::string_view service);

// 503 NOT_AVAILABLE: this node has no source for it.
net::Response not_available(std::string_view what);

extern const api::Failure kNotAvailable;
extern const api::Failure kSubscriptionRequired;
extern const api::Failure kQuotaExceeded;

}  // namespace todoke::users
