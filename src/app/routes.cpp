#include "app/routes.hpp"

#include <fmt/format.h>

#include "app/version.hpp"
#include "base/json_writer.hpp"
#include "orders/core/json_value.hpp"

namespace todoke::app {
namespace {

constexpr int kOk = 200;
constexpr int kUnavailable = 503;

net::Response health_response(const HealthBoard& board, bool details) {
  const auto overall = board.overall();
  JsonWriter json;
  json.begin_object().member("status", to_string(overall));
  if (details) {
    json.member("version", kVersion).key("checks").begin_array();
    for (const auto& line : board.lines()) {
      json.begin_object().member("name", line.name).member("state", to_string(line.health.state));
      json.member("essential", line.essential);
      if (!line.health.detail.empty()) json.member("detail", line.health.detail);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
  auto response =
      net::json_response(overall == HealthState::down ? kUnavailable : kOk, std::move(json).text() + "\n");
  response.headers.set("Cache-Control", "no-store");
  return response;
}

Task<net::Response> answer(net::Response response) {
  co_return response;
}

}  // namespace

void add_public_routes(net::Router& router, const HealthBoard& board, bool greets) {
  net::RouteOptions options;
  options.pays_toll = false;
  router.add(
      "GET", "/healthz", [&board](net::Request&) { return answer(health_response(board, false)); }, options);
  if (!greets) return;
  router.add("GET", "/", [](net::Request&) {
    return answer(net::text_response(
        kOk, "todoke " + std::string(kVersion) + "\n\nGET /healthz tells whether this node is well.\n"));
  });
}

void add_internal_routes(net::Router& router, const HealthBoard& board, const metrics::Registry& registry) {
  router.add("GET", "/healthz", [&board](net::Request&) { return answer(health_response(board, true)); });
  router.add("GET", "/metrics", [&registry](net::Request&) {
    return answer(net::text_response(kOk, registry.render(), metrics::Registry::kContentType));
  });
}

std::string health_summary(const std::string& body) {
  const auto read = read_json(body);
  const auto* status = read ? read->member("status") : nullptr;
  const auto* checks = read ? read->member("checks") : nullptr;
  if (status == nullptr || checks == nullptr) return "an answer that can't be read";
  std::string lines;
  for (const auto& check : checks->values) {
    const auto* name = check.member("name");
    const auto* state = check.member("state");
    if (name == nullptr || state == nullptr || state->text == "up") continue;
    const auto* detail = check.member("detail");
    lines += fmt::format("{}{} {}{}", lines.empty() ? ": " : "; ", name->text, state->text,
                         detail == nullptr ? "" : fmt::format(" ({})", detail->text));
  }
  return status->text + lines;
}

}  // namespace todoke::app
