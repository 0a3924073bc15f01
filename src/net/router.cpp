#include "net/router.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "base/json_writer.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"

namespace todoke::net {
namespace {

// A longer path can't match anything and is not even split.
constexpr std::size_t kSegmentsMax = 32;

struct Target {
  std::string_view path;  // still escaped
  std::string_view query;
};

// Origin form (/path?query) or absolute form (http://host/path?query), which a server must take too.
std::optional<Target> split_target(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() > scheme.size() && same_ignoring_case(target.substr(0, scheme.size()), scheme)) {
      target.remove_prefix(scheme.size());
      const auto slash = target.find('/');
      target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
      break;
    }
  }
  if (!target.starts_with('/')) return std::nullopt;
  Target result;
  result.path = cut_until(target, '?');
  result.query = target;
  return result;
}

std::vector<std::string_view> split_path(std::string_view path) {
  path.remove_prefix(1);
  std::vector<std::string_view> segments;
  while (segments.size() <= kSegmentsMax) {
    const bool last = path.find('/') == std::string_view::npos;
    segments.push_back(cut_until(path, '/'));
    if (last) break;
  }
  return segments;
}

std::string join(const std::set<std::string_view>& methods) {
  return fmt::format("{}", fmt::join(methods, ", "));
}

Response malformed(std::string_view message) {
  return error_response(400, "BAD_REQUEST", message);
}

}  // namespace

struct Router::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> literals;
  std::unique_ptr<Node> parameter;
  std::vector<const Route*> routes;  // those whose pattern ends here

  // Every node whose pattern matches, the strongest first.
  void find(std::span<const std::string> segments, std::vector<std::string>& values,
            const std::function<bool(const Node&, const std::vector<std::string>&)>& visit,
            bool& done) const {
    if (segments.empty()) {
      if (!routes.empty()) done = visit(*this, values);
      return;
    }
    if (const auto literal = literals.find(segments.front()); literal != literals.end()) {
      literal->second->find(segments.subspan(1), values, visit, done);
    }
    if (done || !parameter || segments.front().empty()) return;
    values.push_back(segments.front());
    parameter->find(segments.subspan(1), values, visit, done);
    values.pop_back();
  }

  [[nodiscard]] const Route* route_for(std::string_view method) const {
    const auto with = [&](std::string_view wanted) -> const Route* {
      const auto found = std::find_if(routes.begin(), routes.end(), [&](const Route* route) {
        return !route->is_websocket() && route->method == wanted;
      });
      return found == routes.end() ? nullptr : *found;
    };
    const auto* route = with(method);
    return route == nullptr && method == "HEAD" ? with("GET") : route;
  }

  [[nodiscard]] const Route* websocket() const {
    const auto found =
        std::find_if(routes.begin(), routes.end(), [](const Route* r) { return r->is_websocket(); });
    return found == routes.end() ? nullptr : *found;
  }
};

Router::Router() : root_(std::make_unique<Node>()) {}
Router::~Router() = default;

void Router::add(std::string_view method, std::string_view pattern, Handler handler, RouteOptions options) {
  auto route = std::make_unique<Route>();
  route->method = method;
  route->pattern = pattern;
  route->handler = std::move(handler);
  route->options = std::move(options);
  auto& node = node_of(*route);
  const auto* same = node.route_for(method);
  if (method.empty() || (same != nullptr && same->method == method)) {
    throw std::logic_error(fmt::format("route {} {} has no method or is there already", method, pattern));
  }
  route->index = routes_.size();
  node.routes.push_back(route.get());
  routes_.push_back(std::move(route));
}

void Router::add_websocket(std::string_view pattern, WsHandlerFactory factory, WsOptions options) {
  auto route = std::make_unique<Route>();
  route->pattern = pattern;
  route->make_ws_handler = std::move(factory);
  route->ws_options = options;
  auto& node = node_of(*route);
  if (node.websocket() != nullptr)
    throw std::logic_error(fmt::format("websocket route {} is there already", pattern));
  route->index = routes_.size();
  node.routes.push_back(route.get());
  routes_.push_back(std::move(route));
}

Router::Node& Router::node_of(Route& route) {
  if (!route.pattern.starts_with('/'))
    throw std::logic_error("a pattern starts with a slash: " + route.pattern);
  auto* node = root_.get();
  for (const auto segment : split_path(route.pattern)) {
    const bool is_parameter = segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
    if (!is_parameter && segment.find_first_of("{}%?") != std::string_view::npos) {
      throw std::logic_error("malformed pattern: " + route.pattern);
    }
    auto& next = is_parameter ? node->parameter : node->literals[std::string(segment)];
    if (!next) next = std::make_unique<Node>();
    if (is_parameter) route.parameters.emplace_back(segment.substr(1, segment.size() - 2));
    node = next.get();
  }
  return *node;
}

RouteMatch Router::match(Request& request) const {
  if (request.target == "*" && request.method == "OPTIONS") {
    RouteMatch everything;
    everything.answer.status = 204;
    return everything;
  }
  const auto target = split_target(request.target);
  if (!target) return {nullptr, malformed("the request target must be a path")};
  auto query = parse_query(target->query);
  if (!query) return {nullptr, malformed(query.error().message)};
  request.query = std::move(*query);
  auto path = percent_decode(target->path);
  if (!path) return {nullptr, malformed(path.error().message)};
  request.path = std::move(*path);

  const auto not_found = [] { return error_response(404, "NOT_FOUND", "there is nothing at this path"); };
  std::vector<std::string> segments;
  for (const auto segment : split_path(target->path)) segments.push_back(percent_decode(segment).value());
  if (segments.size() > kSegmentsMax) return {nullptr, not_found()};

  const bool upgrade = is_websocket_upgrade(request);
  const Route* route = nullptr;
  std::string seen_pattern;
  bool websocket_here = false;
  std::set<std::string_view> allowed;
  std::vector<std::string> values;
  bool done = false;
  root_->find(
      segments, values,
      [&](const Node& node, const std::vector<std::string>& found) {
        const auto* websocket = node.websocket();
        websocket_here = websocket_here || websocket != nullptr;
        if (seen_pattern.empty()) seen_pattern = node.routes.front()->pattern;
        for (const auto* r : node.routes) {
          if (!r->is_websocket()) allowed.insert(r->method);
        }
        route = upgrade && websocket != nullptr ? websocket : node.route_for(request.method);
        if (route == nullptr) return false;
        for (std::size_t i = 0; i < found.size(); ++i) request.parameters[route->parameters[i]] = found[i];
        return true;
      },
      done);
  if (route != nullptr) {
    request.route = route->pattern;
    return {route, {}};
  }
  request.route = seen_pattern;
  if (seen_pattern.empty()) return {nullptr, not_found()};
  if (allowed.contains("GET")) allowed.insert("HEAD");
  if (allowed.empty() && websocket_here) {
    RouteMatch result{nullptr, error_response(426, "UPGRADE_REQUIRED", "this path speaks WebSocket only")};
    result.answer.headers.add("Upgrade", "websocket");
    return result;
  }
  allowed.insert("OPTIONS");
  RouteMatch result;
  if (request.method == "OPTIONS") {
    result.answer.status = 204;
  } else {
    JsonWriter details;
    details.begin_object().key("allowed").begin_array();
    for (const auto method : allowed) details.value(method);
    details.end_array().end_object();
    result.answer =
        error_response(405, "METHOD_NOT_ALLOWED", "this path does not take this method", details.text());
  }
  result.answer.headers.add("Allow", join(allowed));
  return result;
}

}  // namespace todoke::net
