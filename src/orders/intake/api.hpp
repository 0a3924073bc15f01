// The order API on the wire: POST /do/order and GET /do/order/{idempotency_key}. docs/orders.md is its
// reference.
//
// A request goes one way: token, rate, body, header, the rules of this installation, intake. A request that
// is refused before the intake has changed nothing. Keys appear in logs as hashes only; request logs and
// spans show the route's pattern and never the path.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "net/router.hpp"
#include "orders/core/halts.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "pg/storage.hpp"

namespace todoke::orders {

// The parts of the API. Everything outlives it.
struct ApiParts {
  const Config& config;
  const Clock& clock;
  Executor executor;
  pg::Pool& pool;
  pg::Listener& listener;
  pg::ConnectOptions database;
  metrics::Registry& metrics;
  net::Router& router;
  std::string adapter;                 // where orders of this node go, for halts
  std::shared_ptr<const Halts> halts;  // runs elsewhere
  pg::Storage& storage;
};

struct BuiltApi {
  std::vector<std::shared_ptr<Service>> services;
  // Must be stopped before the listener that serves the router.
  std::shared_ptr<Service> stops_first;
  std::function<void(const Config&)> on_change;  // takes over limits.rates
  std::function<void()> read_tokens;             // again
  std::function<void()> wake_waiters;            // orders were settled; thread-safe
};

// Throws UserError for a wrong configuration.
BuiltApi build_api(const ApiParts& parts);

}  // namespace todoke::orders
