// A node in the test's process: the roles that the test names, built as `todoke run --roles` builds them
// (app/roles.hpp), on a database of the test's own, with the public listener on a loopback port. They run on
// the loops of a node, each a thread, so that what passes between them is tested as well, by ThreadSanitizer
// too. What surrounds a node is the test's to turn: the clock, the pressure, live keys, the way to the
// database.
//
// Rate limits are off unless a flag says otherwise. Starting and stopping takes some 100 ms, most of it for
// the database.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "harness/await.hpp"
#include "harness/pg_proxy.hpp"
#include "harness/sql_session.hpp"
#include "harness/test_database.hpp"
#include "outbox/event_port.hpp"
#include "outbox/pressure.hpp"

namespace todoke::test {

// The system's clock, moved by the test.
class ShiftedClock final : public Clock {
 public:
  [[nodiscard]] SystemTime now() const override { return std::chrono::system_clock::now() + shift_.load(); }
  [[nodiscard]] SteadyTime steady() const override {
    return std::chrono::steady_clock::now() + steady_shift_.load();
  }
  void shift(std::chrono::seconds by) { shift_ = by; }
  // Deadlines of the database's calls go by the real time.
  void shift_steady(std::chrono::seconds by) { steady_shift_ = by; }

 private:
  std::atomic<std::chrono::seconds> shift_{std::chrono::seconds(0)};
  std::atomic<std::chrono::seconds> steady_shift_{std::chrono::seconds(0)};
};

using Flags = std::vector<std::pair<std::string, std::string>>;
using DatabasePtr = std::shared_ptr<TestDatabase>;

struct NodeRigOptions {
  std::vector<std::string> roles;
  Flags flags = {};                // such as {"relay.topic_policy", "open"}
  DatabasePtr database = nullptr;  // null: a new one
  bool one_loop = false;           // public connections on the loop of the relay
  bool behind_proxy = false;       // the node reaches the database through proxy()
};

class NodeRig {
 public:
  // Serves when it returns.
  explicit NodeRig(NodeRigOptions options);
  ~NodeRig();
  NodeRig(const NodeRig&) = delete;
  NodeRig& operator=(const NodeRig&) = delete;

  // Stops everything as a node does at SIGTERM. The port changes with the next start.
  void stop();
  void start();
  // As a node does at SIGHUP, for the files that the configuration names.
  void reread_files();
  // Changes live keys while it runs, as the database does; those of the last call that are not among them go
  // back to the rig's own. A flag of the rig pins its key.
  void change(const Flags& settings);
  // Sets the pressure of the node (outbox/pressure.hpp).
  void press(int level, outbox::PressureInput input = outbox::PressureInput::backlog);
  // How much is free on the disk that the node watches. It looks once a second: await todoke_storage_full.
  void leave_free(std::uint64_t bytes);
  [[nodiscard]] ShiftedClock& clock();

  // ws://127.0.0.1:<port><path>
  [[nodiscard]] std::string url(std::string_view path = "/relay") const;
  [[nodiscard]] std::uint16_t port() const;

  // The value of a series such as todoke_ws_subscriptions; 0 when there is none.
  [[nodiscard]] double metric(const std::string& series) const;
  [[nodiscard]] bool await_metric(const std::string& series, double value) const;
  // Of the internal listener, on loopback whatever server.internal_listen says.
  [[nodiscard]] std::uint16_t internal_port() const;
  // The body that a GET gets on the internal listener.
  [[nodiscard]] std::string ask_internal(const std::string& path) const;
  // What other rooms publish and read by (outbox/event_port.hpp); only with the role relay.
  [[nodiscard]] outbox::EventPort& events();
  // The spans that have ended since the last call, as OTLP's JSON.
  [[nodiscard]] std::vector<std::string> spans();

  [[nodiscard]] const DatabasePtr& database() const { return options_.database; }
  // Only with behind_proxy.
  [[nodiscard]] PgProxy& proxy() { return *proxy_; }
  // As SqlSession::run, over a new connection, past the proxy.
  Rows sql(const std::string& statement) const;
  // The only value of the only row.
  [[nodiscard]] std::string value(const std::string& statement) const;
  // Asks until the statement gives these rows; the last ones when it does not within kPatience.
  Rows await_sql(const std::string& statement, const Rows& wanted) const;

 private:
  struct Parts;
  [[nodiscard]] std::string url_of_node() const;
  NodeRigOptions options_;
  std::unique_ptr<PgProxy> proxy_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace todoke::test
