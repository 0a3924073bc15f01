// A role: a part of the node that can run in a process of its own. `todoke up` runs all of them, `todoke run
// --roles a,b` those that are named. To add one: write the function that builds it and a line of the table,
// in roles.cpp.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/pools.hpp"
#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/live_config.hpp"
#include "base/metrics.hpp"
#include "base/service.hpp"
#include "base/trace.hpp"
#include "jobs/kind.hpp"
#include "net/router.hpp"
#include "outbox/event_port.hpp"
#include "outbox/log_signal.hpp"
#include "outbox/pressure.hpp"
#include "outbox/search_port.hpp"
#include "pg/listener.hpp"
#include "pg/storage.hpp"

namespace todoke::app {

// What a role is given to build itself from. Everything outlives the role.
struct NodeParts {
  const Config& config;
  const Clock& clock;
  Executor executor;        // the main loop
  Executor relay_executor;  // app/runtime.hpp says who lives where
  Executor consumer_executor;
  Executor gossip_executor;
  Executor read_executor;
  Pools& pools;
  pg::Listener& listener;
  pg::ConnectOptions database;  // for who needs a connection of its own
  outbox::LogSignal& log;
  outbox::Pressure& pressure;
  pg::Storage& storage;
  std::shared_ptr<outbox::SearchPort> search;
  HealthBoard& health;
  metrics::Registry& metrics;
  Tracer& tracer;
  net::Router& public_router;
  net::Router& internal_router;
  LiveConfig& live;
  jobs::Kinds& jobs;  // background jobs that this process does; on the loop of the consumers
  std::function<void(std::shared_ptr<Service>)> add_service;
  // For what keeps requests waiting: it is stopped before the listeners are.
  std::function<void(std::shared_ptr<Service>)> add_service_stopped_first;
  // Stopping takes this much longer than the listeners need to drain.
  std::function<void(std::chrono::milliseconds)> needs_to_stop;
  // Called with the configuration whenever a value of it has changed (base/live_config.hpp), on the executor.
  std::function<void(std::function<void(const Config&)>)> on_change;
  // Called at SIGHUP, for files that the configuration names; on the executor.
  std::function<void(std::function<void()>)> on_sighup;
  std::filesystem::path folder;         // data_dir
  bool loopback = false;                // listeners without a configured address stay on this machine
  std::vector<std::string> roles = {};  // of this process
  // The relay of this process, for roles that need it; null where there is none.
  std::shared_ptr<outbox::EventPort> events = nullptr;
};

struct Role {
  std::string_view name;
  void (*build)(NodeParts&);
  std::vector<std::string_view> consumers = {};  // of the log, that it runs
  // It publishes through the relay of its process, where there is one, and is built after it.
  bool publishes = false;
};

// All of them, by name.
const std::vector<Role>& roles();
// Null where there is none of that name.
const Role* find_role(std::string_view name);

// The role that runs a consumer; empty when none does.
std::string_view role_of_consumer(std::string_view name);
// Whether a consumer's name is one of the node's own: with another version (-v2) it is, too.
bool is_own_consumer(std::string_view name);

// The roles in the order in which a process builds them: as they are named, those that publish last. Throws
// std::invalid_argument for a name that is none.
std::vector<const Role*> build_order(const std::vector<std::string>& names);

// "a,b" as names of roles; "none" is the empty list. Throws UserError for one that does not exist.
std::vector<std::string> parse_roles(std::string_view text);
std::vector<std::string> all_roles();

}  // namespace todoke::app
