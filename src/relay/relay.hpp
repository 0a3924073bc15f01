// The relay as a whole: its parts, wired, and its routes.
#pragma once

#include <functional>
#include <memory>

#include "base/config.hpp"
#include "base/service.hpp"
#include "net/router.hpp"
#include "outbox/event_port.hpp"
#include "outbox/gossip_port.hpp"
#include "outbox/log_signal.hpp"
#include "outbox/pressure.hpp"
#include "outbox/search_port.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "pg/storage.hpp"

namespace todoke::relay {

struct RelayParts {
  const Config& config;
  const Clock& clock;
  Executor executor;       // where the services are run
  Executor read_executor;  // where stored events are made of rows
  pg::Pool& pool;
  pg::Pool& read_pool;
  pg::Pool& background_pool;
  pg::Listener& listener;
  pg::ConnectOptions database;
  outbox::LogSignal& log;
  outbox::Pressure& pressure;
  pg::Storage& storage;
  std::shared_ptr<outbox::SearchPort> search;  // null: there is no index
  HealthBoard& health;
  metrics::Registry& metrics;
  net::Router& router;  // the public one
  std::string_view version;
  // Takes a function that is called with the configuration after every change of it; on the executor.
  std::function<void(std::function<void(const Config&)>)> on_change = [](const auto&) {};
  std::shared_ptr<outbox::GossipOut> gossip = nullptr;  // null: there is no bridge
};

// The relay's services, in the order in which they are to be started; they own the relay.
struct BuiltRelay {
  std::vector<std::shared_ptr<Service>> services;
  std::shared_ptr<outbox::GossipIn> gossip;   // lives as long as they do, as does
  std::shared_ptr<outbox::FillSource> store;  // what gossip reads, and
  std::shared_ptr<outbox::EventPort> events;  // for what other rooms publish and read
};

// Adds the routes `/` and `/relay` (WebSocket and NIP-11).
BuiltRelay build_relay(RelayParts parts);

}  // namespace todoke::relay
