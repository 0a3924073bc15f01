#include "users/rights.hpp"

#include <utility>

#include <fmt/format.h>

#include "api/answers.hpp"
#include "base/bytes.hpp"
#include "base/json_writer.hpp"
#include "base/sha256.hpp"
#include "users/discovery_sql.hpp"
#include "users/json_parts.hpp"

namespace todoke::users {
namespace {

namespace status = api::status;

std::string request_key(const api::Call& call, std::string_view content) {
  const auto& request = call.request;
  return to_hex(sha256({request.request_id, "\n", request.method, "\n", content}));
}

net::Response subscription_required(std::string_view service) {
  return api::failure(status::kForbidden, kSubscriptionRequired.code,
                      fmt::format("this needs an active subscription with the service {}", service));
}

net::Response quota_exceeded(const pg::Row& row, std::string_view metric) {
  JsonWriter details;
  details.begin_object()
      .member("metric", metric)
      .member("current", row.get<std::int64_t>("current"))
      .member("limit", row.get<std::int64_t>("most"));
  write_or_null(details, "reset_at", row.get<std::optional<SystemTime>>("reset_at"));
  details.end_object();
  return api::failure(status::kPaymentRequired, kQuotaExceeded.code,
                      fmt::format("the plan allows no more {} today", metric), details.text());
}

Refusal judged(const pg::Result& rows, std::string_view service, std::string_view metric) {
  if (rows.empty()) return subscription_required(service);
  const auto row = rows.one();
  if (row.get<bool>("allowed")) return std::nullopt;
  return quota_exceeded(row, metric);
}

}  // namespace

const api::Failure kNotAvailable{503, "NOT_AVAILABLE", "This node does not offer it."};
const api::Failure kSubscriptionRequired{403, "SUBSCRIPTION_REQUIRED",
                                         "The caller has no active subscription that opens this."};
const api::Failure kQuotaExceeded{
    402, "QUOTA_EXCEEDED",
    "The plan allows no more of it today; details has metric, current, limit and reset_at."};

Task<Refusal> spend_for_topic(const Desk& desk, const api::Call& call, std::string topic,
                              std::string_view service, std::string_view metric) {
  pg::Params params(call.caller.name, topic, service, metric, request_key(call, call.request.target));
  const auto rows = co_await desk.ask(sql::kSpendForTopic, std::move(params));
  co_return judged(rows, service, metric);
}

Task<Refusal> spend_for_service(const Desk& desk, const api::Call& call, std::string_view service,
                                std::string_view metric) {
  pg::Params params(call.caller.name, service, metric, request_key(call, call.request.target));
  const auto rows = co_await desk.ask(sql::kSpendForService, std::move(params));
  co_return judged(rows, service, metric);
}

Task<Refusal> spend(const Desk& desk, const api::Call& call, std::string_view metric, std::string content) {
  pg::Params params(call.caller.name, metric, request_key(call, content));
  const auto rows = co_await desk.ask(sql::kSpend, std::move(params));
  co_return judged(rows, "", metric);
}

Task<Refusal> check_service(const Desk& desk, const api::Call& call, std::vector<std::string> topics,
                            std::string_view service) {
  pg::Params params(call.caller.name, topics, service);
  const auto rows = co_await desk.ask(sql::kHasService, std::move(params));
  if (rows.one().get<bool>(0)) co_return std::nullopt;
  co_return subscription_required(service);
}

net::Response not_available(std::string_view what) {
  return api::failure(status::kUnavailable, kNotAvailable.code,
                      fmt::format("this node does not offer {}", what));
}

}  // namespace todoke::users
