// The caller's subscriptions: which results of which topics they may use.
#include <optional>
#include <utility>

#include "api/answers.hpp"
#include "api/cursor.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "users/door.hpp"
#include "users/json_parts.hpp"
#include "users/problems.hpp"
#include "users/routes.hpp"
#include "users/topic_schema.hpp"
#include "users/topics_sql.hpp"

namespace todoke::users {
namespace {

namespace status = api::status;

net::Response subscription_answer(const pg::Row& row, const std::string& topic) {
  const auto is = row.get<std::optional<std::string>>("status").value_or("");
  if (const auto problem = row.get<std::optional<std::string>>("problem"))
    return answer_to({.problem = *problem, .status = is});
  JsonWriter json;
  json.begin_object().member("topic_id", topic).member("status", is).end_object();
  return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> pause_subscription(const Desk& desk, const api::Call& call) {
  const auto rows = co_await desk.ask(sql::kPauseSubscription, {call.caller.name, call.text("topic_id")});
  co_return subscription_answer(rows.one(), call.text("topic_id"));
}

Task<net::Response> resume_subscription(const Desk& desk, const api::Call& call) {
  const auto topics_max = static_cast<std::int32_t>(desk.settings()->node.topics_max);
  pg::Params params(call.caller.name, call.text("topic_id"), topics_max);
  const auto rows = co_await desk.ask(sql::kResumeSubscription, std::move(params));
  co_return subscription_answer(rows.one(), call.text("topic_id"));
}

Task<net::Response> end_subscription(const Desk& desk, const api::Call& call) {
  const auto rows = co_await desk.ask(sql::kEndSubscription, {call.caller.name, call.text("topic_id")});
  co_return subscription_answer(rows.one(), call.text("topic_id"));
}

void write_subscription(JsonWriter& json, const pg::Row& row) {
  json.begin_object().member("topic_id", row.get<std::string>("topic_id"));
  write_or_null(json, "topic_name", row.get<std::optional<std::string>>("name"));
  json.member("subscription_id", row.get<std::string>("subscription_id"));
  write_or_null(json, "plan_id", row.get<std::optional<std::string>>("plan_id"));
  json.key("services").begin_array();
  for (const auto& service : row.get<std::vector<std::string>>("services")) json.value(service);
  json.end_array().member("status", row.get<std::string>("status"));
  json.member("started_at", format_timestamp(row.get<SystemTime>("started_at")));
  write_or_null(json, "ended_at", row.get<std::optional<SystemTime>>("ended_at"));
  json.member("is_ingested", row.get<bool>("is_ingested")).end_object();
}

Task<net::Response> list_subscriptions(const Desk& desk, const api::Call& call) {
  std::string after;
  if (const auto cursor = call.text_if("cursor")) {
    const auto values = api::values_of_cursor(*cursor, 1);
    if (!values) co_return api::invalid({"cursor", "must be a cursor that this list has given"});
    after = values->front();
  }
  const auto limit = call.integer_or("limit", kPageDefault);
  pg::Params params(call.caller.name, call.text_if("status"), after, limit);
  const auto rows = co_await desk.ask(sql::kListSubscriptions, std::move(params));
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (const auto& row : rows) write_subscription(json, row);
  json.end_array();
  const bool is_full = static_cast<std::int64_t>(rows.size()) == limit;
  write_next_cursor(
      json, is_full ? api::cursor_of({rows[rows.size() - 1].get<std::string>("topic_id")}) : std::string());
  json.end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

api::Schema subscription_status() {
  return api::choice_of({"active", "paused", "ended"}, "An ended one can begin again by another request.");
}

api::Schema subscription_schema() {
  return api::named(
      "Subscription",
      api::object_of({{"topic_id", topic_schema("The topic.")},
                      {"topic_name", api::nullable(api::text_up_to(1'024, "Its name, where it is known."))},
                      {"subscription_id", api::formatted(api::kUuid, "New with each beginning.")},
                      {"plan_id", api::nullable(api::text_up_to(64, "The plan under which it began."))},
                      {"services", services_schema("The results that it opens.")},
                      {"status", subscription_status()},
                      {"started_at", api::formatted(api::kTimestamp, "When it began.")},
                      {"ended_at", api::nullable(api::formatted(api::kTimestamp, "When it ended."))},
                      {"is_ingested", api::boolean("Whether the node takes the topic in now.")}}));
}

api::Schema state_schema() {
  return api::named("SubscriptionState", api::object_of({{"topic_id", topic_schema("The topic.")},
                                                         {"status", subscription_status()}}));
}

api::Route change(std::string_view method, std::string_view path, std::string_view name,
                  std::string_view meaning, std::vector<std::string_view> problems, api::Handler handler) {
  return {.method = method,
          .path = path,
          .name = name,
          .tag = "topics",
          .meaning = meaning,
          .access = &access::kMember,
          .parameters = {api::in_path("topic_id", topic_schema("The topic."))},
          .answers = {{.meaning = "The subscription now.", .body = state_schema()}},
          .failures = failures_named(problems),
          .handler = std::move(handler)};
}

}  // namespace

void add_subscription_routes(Routes& routes, const DeskPtr& desk) {
  routes.push_back(
      {.method = "GET",
       .path = "/topic-subscriptions",
       .name = "listSubscriptions",
       .tag = "topics",
       .meaning = "The caller's subscriptions by topic; without a status those that are not ended.",
       .access = &access::kMember,
       .parameters = {api::in_query("status", subscription_status()), limit_parameter(), cursor_parameter()},
       .answers = {{.meaning = "A page.", .body = page_of(subscription_schema(), "The subscriptions.")}},
       .handler = at(desk, list_subscriptions)});
  routes.push_back(change("POST", "/topic-subscriptions/{topic_id}/pause", "pauseSubscription",
                          "Pauses a subscription: it opens nothing, and does not count for the topic.",
                          {"NOT_FOUND"}, at(desk, pause_subscription)));
  routes.push_back(change("POST", "/topic-subscriptions/{topic_id}/resume", "resumeSubscription",
                          "Goes on with a paused subscription.",
                          {"NOT_FOUND", "ACCOUNT_DISABLED", "TOPIC_BLOCKED", "NODE_TOPIC_LIMIT_REACHED"},
                          at(desk, resume_subscription)));
  routes.push_back(change("DELETE", "/topic-subscriptions/{topic_id}", "endSubscription",
                          "Ends a subscription. The node stops to take a topic in that nobody uses any more.",
                          {"NOT_FOUND"}, at(desk, end_subscription)));
}

}  // namespace todoke::users
