// The Admin API, under /admin-api/v1 on the internal listener: what operators do, over HTTP. docs/admin-
// api.md is its manual, openapi.json its description.
//
// Lives on the main loop, as the internal listener does. Its statements go through the control pool.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "admin/desk.hpp"
#include "net/router.hpp"

namespace todoke::admin {

inline constexpr std::string_view kApiBase = "/admin-api/v1";

struct AdminParts {
  const LiveConfig& live;
  const Clock& clock;
  Executor executor;
  pg::Pool& pool;
  pg::Listener& listener;
  HealthBoard& health;
  metrics::Registry& metrics;
  net::Router& router;  // of the internal listener
  std::string version;
};

// Adds the routes; returns the services that belong to them.
std::vector<std::shared_ptr<Service>> build_admin(const AdminParts& parts);

}  // namespace todoke::admin
