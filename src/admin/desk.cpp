#include "admin/desk.hpp"

#include <utility>

#include <fmt/format.h>

#include "admin/accounts_sql.hpp"
#include "api/answers.hpp"
#include "api/cursor.hpp"
#include "base/json_writer.hpp"
#include "base/text.hpp"
#include "pg/error.hpp"

namespace todoke::admin {
namespace {

using api::Failure;

constexpr std::chrono::seconds kAnswerMax(10);

const std::vector<Failure> kDoorFailures{
    {401, "UNAUTHORIZED", "No session or token, or one that is not valid any more."},
    {403, "FORBIDDEN", "The role of the session or token does not allow it."},
    {403, "CSRF_TOKEN_REQUIRED", "A change with a session needs X-CSRF-Token."},
    {403, "TLS_REQUIRED", "The internal listener is not on a loopback address and has no TLS."}};

api::Access access_of_a_role() {
  return {.schemes = {"session", "token"}, .failures = kDoorFailures};
}

api::Schema item_schema() {
  return api::any_object("See docs/admin-api.md.");
}

api::Schema page_schema() {
  return api::object_of({{"items", api::list_of(item_schema(), kPageMax, "The page.")},
                         {"next_cursor", api::nullable(api::formatted(api::kCursor,
                                                                      "Of the next page; null: that "
                                                                      "was the last."))}});
}

net::Response page_answer(const pg::Result& rows, std::int64_t limit, std::size_t cursor_parts) {
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  std::int64_t shown = 0;
  std::optional<std::string> next;
  for (const auto& row : rows) {
    if (shown == limit) {
      next = "";
      break;
    }
    json.raw(row.get<std::string>(0));
    ++shown;
  }
  json.end_array().key("next_cursor");
  if (next && shown > 0 && cursor_parts > 0) {
    const auto last = rows[static_cast<std::size_t>(shown) - 1].get<std::vector<std::string>>(1);
    json.value(api::cursor_of(last));
  } else {
    json.null();
  }
  json.end_object();
  return api::answer(api::status::kOk, std::move(json).text());
}

api::Handler at_desk(Desk& desk, DeskHandler handler) {
  return [&desk, handler = std::move(handler)](const api::Call& call) { return handler(desk, call); };
}

net::Response bad_cursor() {
  return api::invalid({"cursor", "must be a cursor that this list has given"});
}

}  // namespace

const api::Access kAnybody{.schemes = {},
                           .failures = {{403, "TLS_REQUIRED",
                                         "The internal listener is not on "
                                         "a loopback address and has no TLS."}}};
const api::Access kViewers = access_of_a_role();
const api::Access kModerators = access_of_a_role();
const api::Access kOperators = access_of_a_role();

Deadline answer_within() {
  return Deadline::after(kAnswerMax);
}

api::Route read_route(Desk& desk, const RouteText& text, std::vector<api::Parameter> parameters,
                      DeskHandler handler) {
  const bool is_list = !parameters.empty() && parameters.back().name == "cursor";
  api::Route route{.method = "GET",
                   .path = text.path,
                   .name = text.name,
                   .tag = text.tag,
                   .meaning = text.meaning,
                   .access = &kViewers,
                   .parameters = std::move(parameters)};
  route.answers = {{.status = 200,
                    .meaning = is_list ? "A page of the list." : "What was asked for.",
                    .body = is_list ? page_schema() : item_schema()}};
  route.failures = {{404, "NOT_FOUND", "There is no such thing."},
                    {422, "VALIDATION_ERROR", "A parameter is wrong; details.field names it."}};
  route.handler = at_desk(desk, std::move(handler));
  return route;
}

api::Route change_route(Desk& desk, std::string_view method, const RouteText& text, const api::Access& who,
                        std::vector<api::Parameter> parameters, std::optional<api::Schema> body,
                        DeskHandler handler) {
  api::Route route{.method = method,
                   .path = text.path,
                   .name = text.name,
                   .tag = text.tag,
                   .meaning = text.meaning,
                   .access = &who,
                   .parameters = std::move(parameters),
                   .body = std::move(body)};
  route.answers = {{.status = 200, .meaning = "It is done; what it is now.", .body = item_schema()}};
  route.failures = {{404, "NOT_FOUND", "There is no such thing."},
                    {409, "CONFLICT", "It can't be done as things are; the code says why."},
                    {422, "VALIDATION_ERROR", "A parameter or a member is wrong; details.field names it."}};
  route.handler = at_desk(desk, std::move(handler));
  return route;
}

api::Schema some_text(std::int64_t most, std::string_view meaning) {
  auto schema = api::text_up_to(most, meaning);
  schema.least = 1;
  return schema;
}

std::vector<api::Parameter> with_page(std::vector<api::Parameter> filters, bool sorted) {
  if (sorted)
    filters.push_back(api::in_query("order", api::choice_of({"newest", "oldest"}, "Which come first.")));
  filters.push_back(api::in_query("limit", api::integer_from(1, kPageMax, "How many; 50 without it.")));
  filters.push_back(api::in_query("cursor", api::formatted(api::kCursor, "Where the page begins.")));
  return filters;
}

bool is_oldest_first(const api::Call& call) {
  return call.text_if("order") == "oldest";
}

Task<net::Response> answer_page(Desk& desk, const api::Call& call, pg::Statement statement, pg::Params params,
                                std::size_t cursor_parts) {
  const auto limit = call.integer_or("limit", kPageDefault);
  std::vector<std::optional<std::string>> place(cursor_parts);
  if (const auto cursor = call.text_if("cursor")) {
    const auto values = api::values_of_cursor(*cursor, cursor_parts);
    if (!values) co_return bad_cursor();
    place.assign(values->begin(), values->end());
  }
  for (const auto& part : place) params.add(part);
  params.add(limit + 1);
  const auto deadline = answer_within();
  const auto lease = co_await desk.pool.acquire(deadline);
  const auto rows = co_await attempt(lease->query(statement, std::move(params), deadline));
  if (!rows) {
    // The parts of a cursor that somebody made up.
    if (pg::refuses_data(rows.error()) && call.text_if("cursor")) co_return bad_cursor();
    std::rethrow_exception(rows.error());
  }
  co_return page_answer(*rows, limit, cursor_parts);
}

Task<net::Response> answer_item(Desk& desk, pg::Statement statement, pg::Params params) {
  const auto deadline = answer_within();
  const auto lease = co_await desk.pool.acquire(deadline);
  const auto rows = co_await lease->query(statement, std::move(params), deadline);
  if (rows.empty()) co_return api::failure(api::status::kNotFound, "NOT_FOUND", "there is no such thing");
  co_return api::answer(api::status::kOk, rows.one().get<std::string>(0));
}

Task<net::Response> answer_change(Desk& desk, const api::Call& call, pg::Statement statement,
                                  pg::Params params, std::optional<pg::Batch::Item> before) {
  const auto deadline = answer_within();
  pg::Batch batch;
  batch.add(sql::kActFor, {call.caller.name, call.caller.network});
  if (before) batch.add(before->statement, std::move(before->params));
  batch.add(statement, std::move(params));
  const auto lease = co_await desk.pool.acquire(deadline);
  const auto results = co_await lease->run(std::move(batch), deadline);
  const auto& rows = results.back();
  const auto problem =
      rows.empty() ? std::optional<std::string>("NOT_FOUND") : rows.one().get<std::optional<std::string>>(0);
  if (!problem) co_return api::answer(api::status::kOk, rows.one().get<std::string>(1));
  const auto details =
      rows.empty() ? std::string() : rows.one().get<std::optional<std::string>>(1).value_or("");
  if (*problem == "NOT_FOUND")
    co_return api::failure(api::status::kNotFound, *problem, "there is no such thing");
  if (problem->starts_with("INVALID ")) co_return api::invalid({problem->substr(8), details});
  co_return api::failure(api::status::kConflict, *problem, "it can't be done as things are", details);
}

Task<void> say_who_acts(pg::Connection& connection, const api::Caller& caller, Deadline deadline) {
  pg::Params params(caller.name, caller.network);
  co_await connection.query(sql::kActForSession, std::move(params), deadline);
}

Task<void> forget_who_acts(pg::Connection& connection, Deadline deadline) {
  pg::Params params("", "");
  co_await connection.query(sql::kActForSession, std::move(params), deadline);
}

net::Response refused(std::string_view code, const Refusal& why) {
  return api::failure(api::status::kConflict, code, why.message);
}

std::string body_json(const api::Call& call, std::string_view member) {
  const auto* value = call.body.member(member);
  return value == nullptr ? std::string("null") : json_of(*value);
}

std::optional<std::int64_t> body_integer(const api::Call& call, std::string_view member) {
  const auto* value = call.body.member(member);
  return value == nullptr ? std::nullopt : parse_number<std::int64_t>(value->text);
}

bool body_flag(const api::Call& call, std::string_view member) {
  const auto* value = call.body.member(member);
  return value != nullptr && value->flag;
}

}  // namespace todoke::admin
