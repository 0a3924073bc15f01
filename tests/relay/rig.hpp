// A whole relay in the test's process: its services, its listener on a loopback port, a database of its own
// or one that it shares with another rig. Its services, stored reads and connections run on loops of their
// own, as in a node, so that what passes between them is tested as well. Rate limits are off unless a flag
// says so.
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
#include "harness/sql_session.hpp"
#include "harness/test_database.hpp"

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

struct RigOptions {
  Flags flags = {};                // such as {"relay.topic_policy", "open"}
  DatabasePtr database = nullptr;  // null: a new one
  bool one_loop = false;           // connections on the loop of the relay
  bool index = false;              // with the search index, run beside the relay
};

class RelayRig {
 public:
  explicit RelayRig(RigOptions options = {});
  explicit RelayRig(Flags flags) : RelayRig(RigOptions{.flags = std::move(flags)}) {}
  ~RelayRig();
  RelayRig(const RelayRig&) = delete;
  RelayRig& operator=(const RelayRig&) = delete;

  // ws://127.0.0.1:<port><path>
  [[nodiscard]] std::string url(std::string_view path = "/relay") const;
  [[nodiscard]] std::uint16_t port() const;

  // As SqlSession::run, over a new connection.
  Rows sql(const std::string& statement) const;
  // The only value of the only row.
  [[nodiscard]] std::string value(const std::string& statement) const;
  // Asks until the statement gives these rows; the last ones when it does not within kPatience.
  Rows await_sql(const std::string& statement, const Rows& wanted) const;

  // The value of a series such as todoke_ws_subscriptions; 0 when there is none.
  [[nodiscard]] double metric(const std::string& series) const;
  [[nodiscard]] bool await_metric(const std::string& series, double value) const;

  [[nodiscard]] ShiftedClock& clock();
  // Waits until the index has taken everything that is in the log.
  void await_index() const;
  // Changes live keys while it runs, as the database does; those of the last call that are not among them go
  // back to the rig's own. A flag of the rig pins its key.
  void change(const Flags& settings);
  // Sets the pressure of the node (outbox/pressure.hpp).
  void press(int level);
  [[nodiscard]] const DatabasePtr& database() const { return options_.database; }

  // Stops everything as a node does at SIGTERM. The port changes with the next start.
  void stop();
  void start();

 private:
  struct Parts;
  RigOptions options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace todoke::test
