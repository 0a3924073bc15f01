// What the roles of a process are built on: connections to the database, the public listener, live
// configuration, the supervisor, metrics, health and traces. A node (node.cpp) adds its ports, the embedded
// Postgres and signals; the rig of the tests (tests/harness/node_rig.cpp) a database and a clock of the
// test's own.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/pools.hpp"
#include "app/storage_watch.hpp"
#include "base/live_config.hpp"
#include "base/service.hpp"
#include "base/trace.hpp"
#include "jobs/kind.hpp"
#include "net/server.hpp"
#include "outbox/event_port.hpp"
#include "outbox/log_signal.hpp"
#include "outbox/pressure.hpp"
#include "pg/listener.hpp"
#include "pg/storage.hpp"

namespace todoke::app {

// Outlives the loops: what waits in a loop that goes may still count and report.
struct NodeState {
  metrics::Registry registry;
  HealthBoard board;
  Tracer tracer{registry};
  outbox::LogSignal log;
  outbox::Pressure pressure;
  pg::Storage storage;
};

// runtime.hpp says who lives on which.
struct NodeLoops {
  Executor main;
  Executor relay;
  Executor consumers;
  Executor gossip;
  Executor reads;
  std::vector<Executor> connections;
  Executor door;
};

// Destroyed before the loops, none of which runs any more then. Its owner adds the services to the
// supervisor, in the order in which they start.
class NodeFrame {
 public:
  // `url`: of the role that the node runs as. `own_server`: as Pools has it.
  NodeFrame(const Config& config, const Clock& clock, NodeState& state, NodeLoops loops, std::string url,
            bool own_server);
  NodeFrame(const NodeFrame&) = delete;
  NodeFrame& operator=(const NodeFrame&) = delete;

  // Adds it; it follows capacity.min_free_bytes.
  void add_storage_watch(StorageWatchOptions options);
  // Adds their services, and a runner of the background jobs that they do. `folder`: data_dir. `loopback`:
  // listeners without a configured address stay on this machine.
  void build_roles(const std::vector<std::string>& names, const std::filesystem::path& folder, bool loopback);
  // As at SIGHUP: the files that the configuration names for the roles.
  void read_files() const;
  // How much longer the roles take to stop than the listeners take to drain.
  [[nodiscard]] std::chrono::milliseconds stop_extra() const { return stop_extra_; }
  // The relay's; null where there is none.
  [[nodiscard]] const std::shared_ptr<outbox::EventPort>& events() const { return events_; }

 private:
  const Config& config_;
  const Clock& clock_;
  NodeState& state_;
  NodeLoops loops_;
  std::string url_;
  jobs::Kinds jobs_;

 public:
  Pools pools;
  std::shared_ptr<pg::Listener> listener;
  std::shared_ptr<net::Router> public_router = std::make_shared<net::Router>();
  std::shared_ptr<net::Router> internal_router = std::make_shared<net::Router>();
  std::shared_ptr<net::HttpServer> server;  // the public one
  Supervisor supervisor;
  LiveConfig live;

 private:
  void add_jobs();

  std::chrono::milliseconds stop_extra_{0};
  std::vector<std::function<void()>> file_readers_;
  std::shared_ptr<outbox::EventPort> events_;
};

}  // namespace todoke::app
