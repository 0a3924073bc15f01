// Policies, and consent to them.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "users/door.hpp"
#include "users/json_parts.hpp"
#include "users/policies_sql.hpp"
#include "users/routes.hpp"

namespace todoke::users {
namespace {

namespace status = api::status;

constexpr std::string_view kEnglish = "en";
constexpr std::int64_t kConsentsMax = 20;  // of one request
constexpr std::size_t kVersionMax = 64;
constexpr std::size_t kLocaleMax = 35;  // BCP 47

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_version(std::string_view text) {
  return !text.empty() && text.size() <= kVersionMax && is_letter_or_digit(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-'; });
}

bool is_locale(std::string_view text) {
  return text.size() >= 2 && text.size() <= kLocaleMax && text.front() >= 'a' && text.front() <= 'z' &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter_or_digit(c) || c == '-'; });
}

const api::Format kVersionFormat{"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", is_version,
                                 "a version: letters, digits, dots, underscores and dashes"};
const api::Format kLocaleFormat{"^[a-z][A-Za-z0-9-]{1,34}$", is_locale, "a language such as en or pt-BR"};

api::Schema type_schema() {
  return api::choice_of({"terms", "privacy"}, "Which policy.");
}

api::Schema version_schema() {
  return api::formatted(kVersionFormat, "Which version of it.");
}

api::Schema locale_schema() {
  return api::formatted(kLocaleFormat, "In which language; another one is given where there is none.");
}

std::string url_of_policy(const Desk& desk, std::string_view type, std::string_view version,
                          std::string_view locale) {
  return desk.url_of(fmt::format("/policies/{}/{}?locale={}", type, version, locale));
}

Task<net::Response> tell_current(const Desk& desk, const api::Call& call) {
  const auto locale = call.text_if("locale").value_or(std::string(kEnglish));
  const auto rows = co_await desk.ask(sql::kCurrentPolicies, {locale});
  JsonWriter json;
  json.begin_object().key("policies").begin_array();
  for (const auto& row : rows) {
    const auto type = row.get<std::string>("type");
    const auto version = row.get<std::string>("version");
    const auto given = row.get<std::string>("locale");
    json.begin_object().member("type", type).member("version", version).member("locale", given);
    json.member("title", row.get<std::string>("title"))
        .member("url", url_of_policy(desk, type, version, given));
    json.member("effective_at", format_timestamp(row.get<SystemTime>("effective_at")));
    json.end_object();
  }
  json.end_array().end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> tell_policy(const Desk& desk, const api::Call& call) {
  const auto locale = call.text_if("locale").value_or(std::string(kEnglish));
  pg::Params params(call.text("type"), call.text("version"), locale);
  const auto rows = co_await desk.ask(sql::kPublishedPolicy, std::move(params));
  if (rows.empty()) co_return api::failure(status::kNotFound, "NOT_FOUND", "there is no such policy");
  const auto row = rows.one();
  JsonWriter json;
  json.begin_object()
      .member("type", row.get<std::string>("type"))
      .member("version", row.get<std::string>("version"))
      .member("locale", row.get<std::string>("locale"))
      .member("title", row.get<std::string>("title"))
      .member("content", row.get<std::string>("content"));
  json.member("published_at", format_timestamp(row.get<SystemTime>("published_at")));
  write_or_null(json, "effective_at", row.get<std::optional<SystemTime>>("effective_at"));
  json.key("locales").begin_array();
  for (const auto& other : row.get<std::vector<std::string>>("locales")) json.value(other);
  json.end_array().end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

void write_consents(JsonWriter& json, const pg::Result& rows, bool given) {
  json.begin_array();
  for (const auto& row : rows) {
    const auto at = row.get<std::optional<SystemTime>>("consented_at");
    if (at.has_value() != given) continue;
    json.begin_object().member("type", row.get<std::string>("type"));
    json.member("version", row.get<std::string>("version"));
    if (at) json.member("consented_at", format_timestamp(*at));
    json.end_object();
  }
  json.end_array();
}

Task<net::Response> tell_consents(const Desk& desk, const api::Call& call) {
  const auto rows = co_await desk.ask(sql::kConsentsOf, {call.caller.name});
  JsonWriter json;
  json.begin_object().key("required");
  write_consents(json, rows, false);
  json.key("given");
  write_consents(json, rows, true);
  json.end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

Task<net::Response> add_consents(const Desk& desk, const api::Call& call) {
  std::vector<std::string> types;
  std::vector<std::string> versions;
  for (const auto& policy : call.body.member("policies")->values) {
    types.push_back(policy.member("type")->text);
    versions.push_back(policy.member("version")->text);
  }
  const auto unknown = co_await desk.ask(sql::kUnpublished, {types, versions});
  if (!unknown.empty()) {
    const auto place = static_cast<std::size_t>(unknown.one().get<std::int64_t>("place"));
    co_return api::invalid({path_of("policies", place), "is no published policy"});
  }
  co_await desk.ask(sql::kAddConsents, pg::Params(types, versions, call.caller.name));
  auto told = co_await tell_consents(desk, call);
  co_return told;
}

api::Schema policy_name() {
  return api::named("PolicyVersion",
                    api::object_of({{"type", type_schema()}, {"version", version_schema()}}));
}

api::Schema time_schema(std::string_view meaning) {
  return api::formatted(api::kTimestamp, meaning);
}

api::Schema current_schema() {
  return api::named("CurrentPolicy", api::object_of({{"type", type_schema()},
                                                     {"version", version_schema()},
                                                     {"locale", locale_schema()},
                                                     {"title", api::text_up_to(400, "Its title.")},
                                                     {"url", api::text_up_to(8'192, "Where its text is.")},
                                                     {"effective_at", time_schema("Since when it holds.")}}));
}

api::Schema policy_schema() {
  return api::named(
      "Policy",
      api::object_of(
          {{"type", type_schema()},
           {"version", version_schema()},
           {"locale", locale_schema()},
           {"title", api::text_up_to(400, "Its title.")},
           {"content", api::text_up_to(262'144, "Its text.")},
           {"published_at", time_schema("Since when it stands.")},
           {"effective_at", api::nullable(time_schema("Since when it is current; null: it is not."))},
           {"locales", api::list_of(locale_schema(), 1'000, "In which languages there is one.")}}));
}

api::Schema consents_schema() {
  auto given = api::object_of(
      {{"type", type_schema()}, {"version", version_schema()}, {"consented_at", time_schema("When.")}});
  return api::named(
      "Consents",
      api::object_of({{"required", api::list_of(policy_name(), 10, "What the caller has to agree to still.")},
                      {"given", api::list_of(std::move(given), 200,
                                             "What the caller has agreed to, the newest first.")}}));
}

}  // namespace

void add_policy_routes(Routes& routes, const DeskPtr& desk) {
  routes.push_back(
      {.method = "GET",
       .path = "/policies/current",
       .name = "getCurrentPolicies",
       .tag = "policies",
       .meaning = "The policies that people must have agreed to. On a node that has none the list is empty.",
       .access = &access::kOpen,
       .parameters = {api::in_query("locale", locale_schema())},
       .answers = {{.meaning = "One entry for each type.",
                    .body = api::object_of({{"policies", api::list_of(current_schema(), 10, "They.")}})}},
       .handler = at(desk, tell_current)});
  routes.push_back(
      {.method = "GET",
       .path = "/policies/{type}/{version}",
       .name = "getPolicy",
       .tag = "policies",
       .meaning = "The text of a published policy. A published version never changes.",
       .access = &access::kOpen,
       .parameters = {api::in_path("type", type_schema()), api::in_path("version", version_schema()),
                      api::in_query("locale", locale_schema())},
       .answers = {{.meaning = "The policy.", .body = policy_schema()}},
       .failures = {{404, "NOT_FOUND", "There is no such policy."}},
       .handler = at(desk, tell_policy)});
  routes.push_back({.method = "GET",
                    .path = "/consents/status",
                    .name = "getConsents",
                    .tag = "policies",
                    .meaning = "What the caller has agreed to, and has to agree to still.",
                    .access = &access::kAccount,
                    .answers = {{.meaning = "The consents.", .body = consents_schema()}},
                    .handler = at(desk, tell_consents)});
  auto policies = api::list_of(policy_name(), kConsentsMax, "What the caller agrees to.");
  policies.least = 1;
  routes.push_back({.method = "POST",
                    .path = "/consents",
                    .name = "giveConsent",
                    .tag = "policies",
                    .meaning = "Agrees to policies. Agreeing once more changes nothing.",
                    .access = &access::kAccount,
                    .body = api::object_of({{"policies", std::move(policies)}}),
                    .answers = {{.meaning = "The consents now.", .body = consents_schema()}},
                    .handler = at(desk, add_consents)});
}

}  // namespace todoke::users
