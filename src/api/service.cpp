#include "api/service.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "api/answers.hpp"
#include "api/openapi.hpp"
#include "base/log.hpp"
#include "pg/error.hpp"

namespace todoke::api {
namespace {

constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kDocumentPath = "/openapi.json";
constexpr std::chrono::seconds kDocumentMaxAge(300);

// Checks a route against itself.
void check_route(const Route& route) {
  const auto wrong = [&](std::string_view what) {
    throw std::logic_error(fmt::format("route {}: {}", route.name, what));
  };
  if (route.access == nullptr || !route.handler || route.answers.empty())
    wrong("has no access, no handler or no answer");
  for (const auto& parameter : route.parameters) {
    const bool is_in_path = route.path.find(fmt::format("{{{}}}", parameter.name)) != std::string_view::npos;
    if (is_in_path != (parameter.in == In::path)) wrong("describes another path");
  }
  const auto of_path = std::count_if(route.parameters.begin(), route.parameters.end(),
                                     [](const Parameter& parameter) { return parameter.in == In::path; });
  if (of_path != std::count(route.path.begin(), route.path.end(), '{')) wrong("does not describe its path");
}

void check_routes(const std::vector<Route>& routes) {
  std::set<std::string_view> names;
  for (const auto& route : routes) {
    check_route(route);
    if (!names.insert(route.name).second)
      throw std::logic_error(fmt::format("two routes are called {}", route.name));
  }
}

using Parameters = std::vector<std::pair<std::string_view, JsonValue>>;

std::optional<BadField> unknown_in_query(const Route& route, const net::Request& request) {
  for (const auto& [name, value] : request.query) {
    const bool is_known =
        std::any_of(route.parameters.begin(), route.parameters.end(),
                    [&](const auto& known) { return known.in == In::query && known.name == name; });
    if (!is_known) return BadField{name, "is not known"};
  }
  return {};
}

// The text of a parameter; nothing where it is not there.
Checked<std::optional<std::string>> text_of(const Parameter& parameter, const net::Request& request) {
  const std::string name(parameter.name);
  if (parameter.in == In::path) return request.parameters.at(name);
  const auto times = std::count_if(request.query.begin(), request.query.end(),
                                   [&](const auto& pair) { return pair.first == name; });
  if (times > 1) return bad_field(name, "is there twice");
  if (times == 0 && parameter.needed == Needed::always) return bad_field(name, "is required");
  const auto value = request.query_value(name);
  return value ? std::optional(std::string(*value)) : std::nullopt;
}

Checked<Parameters> parameters_of(const Route& route, const net::Request& request) {
  if (auto unknown = unknown_in_query(route, request)) return tl::unexpected(std::move(*unknown));
  Parameters parameters;
  for (const auto& parameter : route.parameters) {
    auto text = text_of(parameter, request);
    if (!text) return tl::unexpected(std::move(text.error()));
    if (!*text) continue;
    auto value = value_of_text(parameter.schema, **text, parameter.name);
    if (!value) return tl::unexpected(std::move(value.error()));
    parameters.emplace_back(parameter.name, std::move(*value));
  }
  return parameters;
}

Checked<JsonValue> body_of(const Route& route, const net::Request& request) {
  if (!route.body) return JsonValue();
  auto body = read_json(request.body);
  if (!body) return body;
  if (auto offence = offence_in(*route.body, *body, "")) return tl::unexpected(std::move(*offence));
  return body;
}

Task<net::Response> tell_preflight(std::string allowed) {
  auto response = no_content();
  response.headers.set("Access-Control-Allow-Origin", "*");
  // The one header that * does not stand for.
  response.headers.set("Access-Control-Allow-Headers", "*, Authorization");
  response.headers.set("Access-Control-Allow-Methods", allowed);
  response.headers.set("Access-Control-Max-Age", std::to_string(kDocumentMaxAge.count()));
  response.headers.set("Allow", allowed);
  co_return response;
}

}  // namespace

Service::Service(ServiceOptions options, std::vector<Route> routes, std::shared_ptr<Door> door)
    : options_(std::move(options)),
      routes_(std::move(routes)),
      door_(std::move(door)),
      document_(openapi_document(options_, routes_)) {
  check_routes(routes_);
}

void Service::add_to(net::Router& router, const std::shared_ptr<const Service>& service) {
  for (const auto& base : service->options_.bases) {
    std::map<std::string, std::string> methods;  // of each path
    for (const auto& route : service->routes_) {
      net::RouteOptions options;
      options.body_bytes_max = route.body ? route.body_bytes_max : kNoBodyBytesMax;
      if (route.body) options.content_type = kJsonType;
      options.pays_toll = false;
      auto path = base + std::string(route.path);
      router.add(
          route.method, path,
          [service, &route](net::Request& request) { return service->respond(route, request); },
          std::move(options));
      auto& known = methods[path];
      known += fmt::format("{}{}", known.empty() ? "OPTIONS, " : ", ", route.method);
    }
    router.add("GET", base + std::string(kDocumentPath),
               [service](net::Request& request) { return service->tell_document(request); });
    if (!service->options_.cross_origin) continue;
    net::RouteOptions free;
    free.pays_toll = false;
    for (const auto& [path, allowed] : methods) {
      router.add("OPTIONS", path, [allowed](net::Request&) { return tell_preflight(allowed); }, free);
    }
  }
}

Task<net::Response> Service::tell_document(const net::Request& request) const {
  auto response = answer_to_caches(request, document_, std::nullopt, kDocumentMaxAge);
  open_to_pages(response);
  co_return response;
}

void Service::open_to_pages(net::Response& response) const {
  if (!options_.cross_origin) return;
  response.headers.set("Access-Control-Allow-Origin", "*");
  response.headers.set("Access-Control-Expose-Headers", "*");
}

Task<net::Response> Service::respond(const Route& route, const net::Request& request) const {
  std::string failed;
  try {
    auto response = co_await call(route, request);
    open_to_pages(response);
    co_return response;
  } catch (const pg::DatabaseError& error) {
    failed = error.what();
  }
  log::warning("api", "the database can't be asked", {{"route", route.name}, {"error", failed}});
  auto response = unavailable("the database can't be asked now");
  open_to_pages(response);
  co_return response;
}

Task<net::Response> Service::call(const Route& route, const net::Request& request) const {
  auto caller = co_await door_->admit(request, route);
  if (!caller) co_return std::move(caller.error());
  auto parameters = parameters_of(route, request);
  if (!parameters) co_return invalid(parameters.error());
  auto body = body_of(route, request);
  if (!body) co_return invalid(body.error());
  const Call called{request, route, std::move(*caller), std::move(*parameters), std::move(*body)};
  co_return co_await route.handler(called);
}

}  // namespace todoke::api
