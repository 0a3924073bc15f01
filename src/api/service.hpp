// A JSON API over HTTP, made of its routes: it adds them to a router, checks what comes in, and gives the
// OpenAPI 3.1 document.
//
// A request goes one way: door (who calls, how often), parameters, body, handler. What is refused has changed
// nothing. A parameter or member that a route does not know is refused, so that a misspelt name shows.
// Handlers may throw what the database throws: the caller gets 503 UNAVAILABLE, never the database's words.
//
// Cost beside the handler: a few microseconds for the checks of a small body.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/route.hpp"
#include "net/router.hpp"

namespace todoke::api {

// A way to say who one is, as OpenAPI describes it.
struct SecurityScheme {
  std::string_view name;
  std::string_view json;  // the object of the document
};

struct ServiceOptions {
  std::string title;
  std::string version;
  std::string description;
  std::vector<std::string> bases;  // such as /api/v1: every route is below each; the first is the document's
  std::vector<SecurityScheme> schemes;
  bool cross_origin = false;  // pages of any origin may ask; only without cookies
};

class Service {
 public:
  // Throws std::logic_error for routes that contradict themselves: a parameter of the path that is not
  // described, a name that is there twice.
  Service(ServiceOptions options, std::vector<Route> routes, std::shared_ptr<Door> door);

  // The routes, and the document at openapi.json below each base. The router keeps the service alive.
  static void add_to(net::Router& router, const std::shared_ptr<const Service>& service);

  [[nodiscard]] const std::string& document() const { return document_; }
  [[nodiscard]] const std::vector<Route>& routes() const { return routes_; }
  [[nodiscard]] const ServiceOptions& options() const { return options_; }

 private:
  Task<net::Response> respond(const Route& route, const net::Request& request) const;
  Task<net::Response> call(const Route& route, const net::Request& request) const;
  Task<net::Response> tell_document(const net::Request& request) const;
  void open_to_pages(net::Response& response) const;

  const ServiceOptions options_;
  const std::vector<Route> routes_;
  const std::shared_ptr<Door> door_;
  const std::string document_;
};

}  // namespace todoke::api
