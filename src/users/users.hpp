// The User API: the one public HTTP surface for people who use the node, by their public key. Its routes are
// below /api/v1 and /v1, its OpenAPI document at /api/v1/openapi.json; docs/user-api.md is its guide.
//
// Rights and consent hold here whatever the relay's auth says. Requests run on the loops of connections and
// use the pool of public reads, so that they hold up neither the writer nor orders.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "base/service.hpp"
#include "jobs/kind.hpp"
#include "net/router.hpp"
#include "users/desk.hpp"

namespace todoke::users {

// The parts of the API. Everything outlives it.
struct UsersParts {
  const Config& config;
  const Clock& clock;
  Executor executor;
  pg::Pool& pool;        // for requests
  pg::Pool& background;  // for what is computed now and then
  Executor background_executor;
  metrics::Registry& metrics;
  net::Router& router;
  jobs::Kinds& jobs;  // run on the loop of the background
  Desk::Ports ports;
  std::filesystem::path folder;  // data_dir
  std::string version;
  NodeFacts (*facts)(const Config&);
};

struct BuiltUsers {
  std::vector<std::shared_ptr<Service>> services;
  std::vector<std::shared_ptr<Service>> background_services;  // on the executor of the background
  std::function<void(const Config&)> on_change;
};

BuiltUsers build_users(const UsersParts& parts);

}  // namespace todoke::users
