// The sending side of the orders as services: the kill switch, the monitor and, where outbox.enabled says so,
// the worker with its broker.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/service.hpp"
#include "base/trace.hpp"
#include "orders/core/halts.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

struct DispatcherParts {
  const Config& config;
  const Clock& clock;
  Executor executor;
  pg::Pool& pool;
  pg::Listener& listener;
  pg::ConnectOptions database;
  HealthBoard& health;
  metrics::Registry& metrics;
  Tracer& tracer;
  std::shared_ptr<Halts> halts;              // among the services that are built
  std::function<void()> on_settled = [] {};  // after orders were settled; on the executor
};

struct Dispatcher {
  std::vector<std::shared_ptr<Service>> services;  // in the order in which they start
  // Time that a stop may take: the worker finishes and settles the orders under way.
  std::chrono::milliseconds stops_within{0};
  // Takes over the settings that may change while it runs: outbox.concurrency and outbox.lock_lease_sec. On
  // the executor.
  std::function<void(const Config&)> on_change;
};

Dispatcher build_dispatcher(DispatcherParts parts);

}  // namespace todoke::orders
