#include "api/openapi.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace todoke::api {
namespace {

// All failures of one status, in the order of the routes' words.
using ByStatus = std::map<int, std::vector<Failure>>;

void add_failures(ByStatus& by_status, const std::vector<Failure>& failures) {
  for (const auto& failure : failures) {
    auto& list = by_status[failure.status];
    const bool is_there = std::any_of(list.begin(), list.end(), [&](const Failure& known) {
      return known.code == failure.code && known.when == failure.when;
    });
    if (!is_there) list.push_back(failure);
  }
}

ByStatus failures_of(const Route& route) {
  ByStatus by_status;
  add_failures(by_status, route.access->failures);
  add_failures(by_status, route.failures);
  add_failures(by_status, failures_of_all());
  add_failures(by_status,
               {{422, "VALIDATION_ERROR",
                 "A parameter or a member of the body is wrong or not known; details.field names it."}});
  if (route.body) add_failures(by_status, failures_of_bodies());
  return by_status;
}

void write_failure_schema(JsonWriter& json) {
  json.key("Failure").begin_object().member("type", "object").key("properties").begin_object();
  json.key("code").begin_object().member("type", "string").end_object();
  json.key("message").begin_object().member("type", "string").end_object();
  json.key("details").begin_object().member("type", "object").end_object();
  json.end_object().key("required").begin_array().value("code").value("message").value("details");
  json.end_array().member("additionalProperties", false).end_object();
}

void write_content(JsonWriter& json, std::string_view type, const Schema& schema) {
  json.key("content").begin_object().key(type).begin_object().key("schema");
  write_schema(json, schema);
  json.end_object().end_object();
}

void write_answer(JsonWriter& json, const Answer& answer) {
  json.key(std::to_string(answer.status)).begin_object().member("description", answer.meaning);
  if (answer.body) {
    write_content(json, answer.content_type, *answer.body);
  } else if (answer.content_type != Answer().content_type) {
    json.key("content").begin_object().key(answer.content_type).begin_object().end_object().end_object();
  }
  json.end_object();
}

void write_failures(JsonWriter& json, int status, const std::vector<Failure>& failures) {
  std::string text;
  for (const auto& failure : failures)
    text += fmt::format("{}`{}`: {}", text.empty() ? "" : " ", failure.code, failure.when);
  json.key(std::to_string(status)).begin_object().member("description", text);
  json.key("content").begin_object().key("application/json").begin_object().key("schema").begin_object();
  json.member("$ref", "#/components/schemas/Failure").end_object().end_object().end_object().end_object();
}

void write_parameters(JsonWriter& json, const Route& route) {
  json.key("parameters").begin_array();
  for (const auto& parameter : route.parameters) {
    const bool is_needed = parameter.in == In::path || parameter.needed == Needed::always;
    json.begin_object()
        .member("name", parameter.name)
        .member("in", parameter.in == In::path ? "path" : "query");
    json.member("required", is_needed).key("schema");
    write_schema(json, parameter.schema);
    json.end_object();
  }
  json.end_array();
}

void write_operation(JsonWriter& json, const Route& route) {
  std::string method(route.method);
  std::transform(method.begin(), method.end(), method.begin(), lower);
  json.key(method).begin_object().member("operationId", route.name);
  json.key("tags").begin_array().value(route.tag).end_array();
  json.member("description", route.meaning);
  json.key("security").begin_array();
  for (const auto scheme : route.access->schemes)
    json.begin_object().key(scheme).begin_array().end_array().end_object();
  json.end_array();
  write_parameters(json, route);
  if (route.body) {
    json.key("requestBody").begin_object().member("required", true);
    write_content(json, Answer().content_type, *route.body);
    json.end_object();
  }
  json.key("responses").begin_object();
  for (const auto& answer : route.answers) write_answer(json, answer);
  for (const auto& [status, failures] : failures_of(route)) write_failures(json, status, failures);
  json.end_object().end_object();
}

// The routes of each path, in the order in which they were given.
std::vector<std::pair<std::string_view, std::vector<const Route*>>> by_path(
    const std::vector<Route>& routes) {
  std::vector<std::pair<std::string_view, std::vector<const Route*>>> paths;
  for (const auto& route : routes) {
    auto at =
        std::find_if(paths.begin(), paths.end(), [&](const auto& path) { return path.first == route.path; });
    if (at == paths.end()) at = paths.insert(paths.end(), {route.path, {}});
    at->second.push_back(&route);
  }
  return paths;
}

void write_components(JsonWriter& json, const ServiceOptions& options, const std::vector<Route>& routes) {
  std::vector<const Schema*> schemas;
  for (const auto& route : routes) {
    if (route.body) collect_components(*route.body, schemas);
    for (const auto& answer : route.answers) {
      if (answer.body) collect_components(*answer.body, schemas);
    }
    for (const auto& parameter : route.parameters) collect_components(parameter.schema, schemas);
  }
  json.key("components").begin_object().key("schemas").begin_object();
  for (const auto* schema : schemas) {
    json.key(schema->name);
    write_component(json, *schema);
  }
  write_failure_schema(json);
  json.end_object().key("securitySchemes").begin_object();
  for (const auto& scheme : options.schemes) json.key(scheme.name).raw(scheme.json);
  json.end_object().end_object();
}

}  // namespace

const std::vector<Failure>& failures_of_all() {
  static const std::vector<Failure> kFailures{
      {400, "BAD_REQUEST", "The request is malformed: its path or query is no percent-encoded UTF-8."},
      {503, "UNAVAILABLE", "The node can't answer now; try again."}};
  return kFailures;
}

const std::vector<Failure>& failures_of_bodies() {
  static const std::vector<Failure> kFailures{
      {413, "PAYLOAD_TOO_LARGE", "The body is too large."},
      {415, "UNSUPPORTED_MEDIA_TYPE", "The body is not application/json."}};
  return kFailures;
}

std::string openapi_document(const ServiceOptions& options, const std::vector<Route>& routes) {
  JsonWriter json;
  json.begin_object().member("openapi", "3.1.0");
  json.key("info").begin_object().member("title", options.title).member("version", options.version);
  json.member("description", options.description);
  json.key("license").begin_object().member("name", "MIT").member("identifier", "MIT").end_object();
  json.end_object();
  json.key("servers").begin_array();
  for (const auto& base : options.bases) json.begin_object().member("url", base).end_object();
  json.end_array().key("paths").begin_object();
  for (const auto& [path, here] : by_path(routes)) {
    json.key(path).begin_object();
    for (const auto* route : here) write_operation(json, *route);
    json.end_object();
  }
  json.end_object();
  write_components(json, options, routes);
  json.end_object();
  return std::move(json).text();
}

}  // namespace todoke::api
