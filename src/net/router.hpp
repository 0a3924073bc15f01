// Which handler answers which request.
//
// A pattern is a path of segments, `{name}` stands for any one segment: /do/order/{key}. A literal segment is
// stronger than a parameter. Paths are strict: /a/ is not /a. Segments are percent-decoded one by one, so an
// escaped slash inside a parameter stays inside it. HEAD is answered by GET, OPTIONS with what is allowed.
//
// Filled before the server starts, immutable afterwards, shared by all threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/async.hpp"
#include "net/message.hpp"
#include "net/websocket.hpp"

namespace todoke::net {

// The request lives as long as the task. What is thrown becomes 500 INTERNAL; its text goes to the log only.
using Handler = std::function<Task<Response>(Request&)>;
// Null: no room for one more connection; the client gets 503.
using WsHandlerFactory = std::function<std::shared_ptr<WsHandler>(const Request&)>;
// Charges the client for a request, before its body is read and its handler is called. The answer to give
// where the client has used up its rate (429); the connection ends with it. From any thread.
using Toll = std::function<std::optional<Response>(const Request&)>;

struct RouteOptions {
  std::optional<std::size_t> body_bytes_max;          // otherwise the server's
  std::optional<std::chrono::milliseconds> deadline;  // otherwise the server's
  std::string content_type;  // a body of another media type is refused with 415; empty: any
  bool pays_toll = true;     // false: it has limits of its own, or is asked for by machines all the time
};

struct Route {
  std::size_t index = 0;  // among all routes of the router
  std::string method;     // empty: a WebSocket route
  std::string pattern;
  std::vector<std::string> parameters;  // their names, in order
  Handler handler;
  RouteOptions options;
  WsHandlerFactory make_ws_handler;
  WsOptions ws_options;

  [[nodiscard]] bool is_websocket() const { return make_ws_handler != nullptr; }
};

// Either a route, or the answer to give without one (400, 404, 405, 426, or 204 to OPTIONS).
struct RouteMatch {
  const Route* route = nullptr;
  Response answer;
};

class Router {
 public:
  Router();
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // A malformed pattern and a route that is there already are programming errors and throw std::logic_error.
  void add(std::string_view method, std::string_view pattern, Handler handler, RouteOptions options = {});
  void add_websocket(std::string_view pattern, WsHandlerFactory factory, WsOptions options = {});

  // Every request pays, also one that nobody can read and one for another host. An upgrade to WebSocket does
  // not: its factory decides; nor do requests of routes that say so. Without a toll nothing costs anything.
  void set_toll(Toll toll) { toll_ = std::move(toll); }
  [[nodiscard]] std::optional<Response> pay_toll(const Request& request) const {
    return toll_ ? toll_(request) : std::nullopt;
  }

  // Reads method, target and headers of the request; fills in path, query, parameters and route.
  [[nodiscard]] RouteMatch match(Request& request) const;

  [[nodiscard]] std::size_t size() const { return routes_.size(); }
  [[nodiscard]] const std::vector<std::unique_ptr<Route>>& routes() const { return routes_; }

 private:
  struct Node;
  Node& node_of(Route& route);

  std::unique_ptr<Node> root_;
  std::vector<std::unique_ptr<Route>> routes_;
  Toll toll_;
};

}  // namespace todoke::net
