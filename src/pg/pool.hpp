// A bounded set of connections, shared by all executors of the process. Thread-safe.
//
// A caller that finds no free connection waits in line, first come first served, at most `wait_max` and with
// at most `waiters_max` others; beyond either, acquire() throws PoolTimeout. A connection goes back idle or
// not at all: one with an open transaction is rolled back in the background first, one that is broken or
// half-way through a call is closed. The pool sends no DISCARD: a caller that uses SET or session-level locks
// cleans up, or closes the connection. While the server can't be reached, connecting is tried again with
// backoff until the caller's wait is over.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "base/metrics.hpp"
#include "base/priority.hpp"
#include "pg/connection.hpp"

namespace todoke::pg {

struct PoolOptions {
  std::string name = "main";  // the label `pool` of its metrics
  ConnectOptions connect;
  std::size_t connections_max = 16;
  // Kept open also while unused, so that the next caller does not wait for a connect.
  std::size_t connections_idle_min = 1;
  // A caller behind so many others would hardly be served in time, so acquire() throws at once.
  std::size_t waiters_max = 1000;
  std::chrono::milliseconds wait_max{5'000};
  std::chrono::milliseconds idle_max{300'000};
  // Age at which a connection is replaced: backends grow with what they cache, and only a new connection
  // finds a new primary.
  std::chrono::milliseconds lifetime_max{3'600'000};
  // Of the server's processes behind these connections. Only for a server whose processes are ours; best
  // effort.
  Priority backends = Priority::ordinary;
};

class Pool;

// A connection on loan; goes back when it is dropped.
class Lease {
 public:
  Lease(Lease&& other) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease();

  Connection& operator*() const { return *connection_; }
  Connection* operator->() const { return connection_.get(); }

 private:
  friend class Pool;
  friend class Place;
  friend struct PoolInside;
  struct Core;
  Lease(std::shared_ptr<Core> core, std::unique_ptr<Connection> connection, SteadyTime made,
        Executor executor);

  std::shared_ptr<Core> core_;
  std::unique_ptr<Connection> connection_;
  SteadyTime made_;
  Executor executor_;
};

class Pool {
 public:
  Pool(PoolOptions options, const Clock& clock, metrics::Registry& registry);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Throws PoolTimeout, ConnectionLost (the pool was closed) or UserError (the connection string). The lease
  // is used on the executor of the caller.
  Task<Lease> acquire(Deadline deadline);

  // Closes idle connections beyond the minimum and those that are too old. To be called now and then.
  void close_expired();
  // Closes what is idle, fails those who wait and lets go of the rest as they come back.
  void close();

  struct Counts {
    std::size_t idle = 0;
    std::size_t busy = 0;  // on loan, being made or being rolled back
    std::size_t waiting = 0;
  };
  [[nodiscard]] Counts counts() const;
  // False: the last attempt to connect failed.
  [[nodiscard]] bool can_connect() const;
  [[nodiscard]] std::size_t connections_max() const;

 private:
  std::shared_ptr<Lease::Core> core_;
};

}  // namespace todoke::pg
