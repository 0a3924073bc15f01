// Asking the node to carry a topic, and what became of it.
#include <optional>
#include <utility>

#include "api/answers.hpp"
#include "api/cursor.hpp"
#include "base/bytes.hpp"
#include "base/json_writer.hpp"
#include "base/sha256.hpp"
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

constexpr std::int64_t kInviteMax = 200;

Checked<std::string> asked_topic(const Desk& desk, const api::Call& call) {
  if (const auto name = call.body_text("topic_name")) return topic_id_of(desk, *name, "topic_name");
  return topic_id_in(desk, call.body_text("topic_id").value_or(""), "topic_id");
}

// All of them, unless the caller says which.
std::vector<std::string> asked_services(const api::Call& call) {
  if (call.body.member("requested_services") == nullptr) return {"index", "moderation", "trust"};
  return call.body_texts("requested_services");
}

// Invites are kept as hashes.
std::optional<std::string> invite_hash(const api::Call& call) {
  const auto code = call.body_text("invite_code");
  if (!code) return std::nullopt;
  return to_hex(sha256({*code}));
}

Refused refused_by(const pg::Row& row) {
  return {.problem = row.get<std::string>("problem"),
          .request_id = row.get<std::optional<std::string>>("request_id").value_or(""),
          .status = row.get<std::optional<std::string>>("status").value_or(""),
          .current = row.get<std::optional<std::int64_t>>("current"),
          .most = row.get<std::optional<std::int64_t>>("most")};
}

Task<net::Response> ask_for_topic(const Desk& desk, const api::Call& call) {
  const auto topic = asked_topic(desk, call);
  if (!topic) co_return api::invalid(topic.error());
  const auto settings = desk.settings();
  pg::Params params(call.caller.name, *topic, call.body_text("topic_name"), asked_services(call),
                    static_cast<std::int32_t>(settings->pending_requests_max),
                    static_cast<std::int32_t>(settings->node.topics_max), settings->auto_approve,
                    invite_hash(call));
  const auto rows = co_await desk.ask(sql::kRequestTopic, std::move(params));
  const auto row = rows.one();
  if (!row.is_null(0)) co_return answer_to(refused_by(row));
  JsonWriter json;
  json.begin_object()
      .member("request_id", row.get<std::string>("request_id"))
      .member("topic_id", *topic)
      .member("status", row.get<std::string>("status"))
      .end_object();
  co_return api::answer(status::kCreated, std::move(json).text());
}

void write_request(JsonWriter& json, const pg::Row& row) {
  json.begin_object().member("request_id", row.get<std::string>("request_id"));
  json.member("topic_id", row.get<std::string>("topic_id"));
  write_or_null(json, "topic_name", row.get<std::optional<std::string>>("topic_name"));
  json.key("requested_services").begin_array();
  for (const auto& service : row.get<std::vector<std::string>>("requested_services")) json.value(service);
  json.end_array().member("status", row.get<std::string>("status"));
  write_or_null(json, "review_note", row.get<std::optional<std::string>>("review_note"));
  json.member("created_at", format_timestamp(row.get<SystemTime>("created_at")));
  write_or_null(json, "reviewed_at", row.get<std::optional<SystemTime>>("reviewed_at"));
  json.end_object();
}

std::string cursor_after(const pg::Row& row) {
  return api::cursor_of(
      {format_timestamp(row.get<SystemTime>("created_at")), row.get<std::string>("request_id")});
}

struct RequestPlace {
  std::optional<SystemTime> created_at;
  std::optional<std::string> request_id;
};

Checked<RequestPlace> place_in(const api::Call& call) {
  const auto cursor = call.text_if("cursor");
  if (!cursor) return RequestPlace{};
  const auto values = api::values_of_cursor(*cursor, 2);
  const auto created_at = values ? parse_timestamp(values->front()) : std::nullopt;
  if (!created_at || !api::kUuid.matches(values->back()))
    return bad_field("cursor", "must be a cursor that this list has given");
  return RequestPlace{created_at, values->back()};
}

Task<net::Response> list_requests(const Desk& desk, const api::Call& call) {
  const auto place = place_in(call);
  if (!place) co_return api::invalid(place.error());
  const auto limit = call.integer_or("limit", kPageDefault);
  pg::Params params(call.caller.name, call.text_if("status"), place->created_at, place->request_id, limit);
  const auto rows = co_await desk.ask(sql::kListRequests, std::move(params));
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (const auto& row : rows) write_request(json, row);
  json.end_array();
  const bool is_full = static_cast<std::int64_t>(rows.size()) == limit;
  write_next_cursor(json, is_full ? cursor_after(rows[rows.size() - 1]) : std::string());
  json.end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> get_request(const Desk& desk, const api::Call& call) {
  const auto rows = co_await desk.ask(sql::kGetRequest, {call.caller.name, call.text("request_id")});
  if (rows.empty()) co_return answer_to({.problem = "NOT_FOUND"});
  JsonWriter json;
  write_request(json, rows.one());
  co_return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> cancel_request(const Desk& desk, const api::Call& call) {
  const auto rows = co_await desk.ask(sql::kCancelRequest, {call.caller.name, call.text("request_id")});
  const auto row = rows.one();
  const auto is = row.get<std::optional<std::string>>("status").value_or("");
  if (const auto problem = row.get<std::optional<std::string>>("problem"))
    co_return answer_to({.problem = *problem, .status = is});
  JsonWriter json;
  json.begin_object()
      .member("request_id", call.text("request_id"))
      .member("topic_id", row.get<std::string>("topic_id"))
      .member("status", is)
      .end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

api::Schema request_status() {
  return api::choice_of(
      {"pending", "approved", "rejected", "active", "cancelled"},
      "pending: waits for the operator. approved: and the node begins to take the topic in. "
      "active: it does.");
}

api::Schema request_id_schema() {
  return api::formatted(api::kUuid, "Of the request.");
}

api::Schema decided_schema() {
  return api::named("RequestState", api::object_of({{"request_id", request_id_schema()},
                                                    {"topic_id", topic_schema("The topic.")},
                                                    {"status", request_status()}}));
}

api::Schema request_schema() {
  return api::named(
      "SubscriptionRequest",
      api::object_of(
          {{"request_id", request_id_schema()},
           {"topic_id", topic_schema("The topic.")},
           {"topic_name", api::nullable(api::text_up_to(1'024, "The name that was asked by."))},
           {"requested_services", services_schema("The results that were asked for.")},
           {"status", request_status()},
           {"review_note", api::nullable(api::text_up_to(2'048, "What the operator says about it."))},
           {"created_at", api::formatted(api::kTimestamp, "When it was asked.")},
           {"reviewed_at", api::nullable(api::formatted(api::kTimestamp, "When it was decided."))}}));
}

api::Schema new_request_schema() {
  auto invite =
      api::text_up_to(kInviteMax, "Lets the request be approved at once, where the node has it so.");
  invite.least = 1;
  return api::named(
      "NewSubscriptionRequest",
      api::with_one_of(
          api::object_of({{"topic_id", topic_schema("The topic by its id."), api::Needed::optional},
                          {"topic_name", topic_schema("The topic by its name."), api::Needed::optional},
                          {"requested_services",
                           services_schema("Which results the subscription shall open; all unless given."),
                           api::Needed::optional},
                          {"invite_code", std::move(invite), api::Needed::optional}}),
          {"topic_id", "topic_name"}));
}

}  // namespace

void add_request_routes(Routes& routes, const DeskPtr& desk) {
  routes.push_back({.method = "POST",
                    .path = "/topic-subscription-requests",
                    .name = "requestTopic",
                    .tag = "topics",
                    .meaning = "Asks the node to carry a topic and to open results of it to the caller.",
                    .access = &access::kMember,
                    .body = new_request_schema(),
                    .answers = {{.status = 201, .meaning = "It is asked.", .body = decided_schema()}},
                    .failures = failures_named({"ACCOUNT_DISABLED", "TOPIC_BLOCKED", "ALREADY_SUBSCRIBED",
                                                "REQUEST_EXISTS", "QUOTA_EXCEEDED", "INVALID_INVITE",
                                                "PENDING_SUBSCRIPTION_REQUEST_LIMIT_REACHED"}),
                    .handler = at(desk, ask_for_topic)});
  routes.push_back(
      {.method = "GET",
       .path = "/topic-subscription-requests",
       .name = "listRequests",
       .tag = "topics",
       .meaning = "The caller's requests, the newest first.",
       .access = &access::kMember,
       .parameters = {api::in_query("status", request_status()), limit_parameter(), cursor_parameter()},
       .answers = {{.meaning = "A page.", .body = page_of(request_schema(), "The requests.")}},
       .handler = at(desk, list_requests)});
  routes.push_back({.method = "GET",
                    .path = "/topic-subscription-requests/{request_id}",
                    .name = "getRequest",
                    .tag = "topics",
                    .meaning = "One of the caller's requests.",
                    .access = &access::kMember,
                    .parameters = {api::in_path("request_id", request_id_schema())},
                    .answers = {{.meaning = "The request.", .body = request_schema()}},
                    .failures = failures_named({"NOT_FOUND"}),
                    .handler = at(desk, get_request)});
  routes.push_back({.method = "DELETE",
                    .path = "/topic-subscription-requests/{request_id}",
                    .name = "cancelRequest",
                    .tag = "topics",
                    .meaning = "Takes a request back that waits for a decision.",
                    .access = &access::kMember,
                    .parameters = {api::in_path("request_id", request_id_schema())},
                    .answers = {{.meaning = "It is cancelled.", .body = decided_schema()}},
                    .failures = failures_named({"NOT_FOUND", "ALREADY_DECIDED"}),
                    .handler = at(desk, cancel_request)});
}

}  // namespace todoke::users
