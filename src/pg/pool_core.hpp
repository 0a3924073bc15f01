// The inside of a Pool: the books under one lock. Nothing is connected, closed or waited for while it is
// held.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/backoff.hpp"
#include "pg/pool.hpp"

namespace todoke::pg {

struct PoolMetrics {
  PoolMetrics(metrics::Registry& registry, const std::string& pool);
  metrics::Gauge& idle;
  metrics::Gauge& busy;
  metrics::Gauge& waiters;
  metrics::Histogram& wait_seconds;
  metrics::Counter& timeouts;
  metrics::Counter& connects;
  metrics::Counter& connect_failures;
  metrics::Histogram& query_seconds;
};

struct Lease::Core {
  struct Idle {
    std::unique_ptr<Connection> connection;
    SteadyTime made;
    SteadyTime since;
  };

  // What a caller was given: a connection, or the right to make one (its place is counted as busy already).
  struct Grant {
    std::unique_ptr<Connection> connection;
    SteadyTime made;
  };

  struct Waiter {
    explicit Waiter(const Executor& executor) : woken(executor) {}
    Signal woken;  // on the executor of who waits
    std::optional<Grant> grant;
  };

  Core(PoolOptions o, const Clock& c, metrics::Registry& registry);

  // A grant, where one is to be had without waiting; otherwise joins the line. Throws PoolTimeout when the
  // line is full.
  std::optional<Grant> acquire_or_join(std::shared_ptr<Waiter>& waiter, const Executor& executor);
  // Leaves the line, or returns what was granted in the same moment.
  std::optional<Grant> leave_line(const std::shared_ptr<Waiter>& waiter);
  // Gives a connection back; it must be usable and idle.
  void give_back(std::unique_ptr<Connection> connection, SteadyTime made);
  // Gives up a place: a connection was closed or could not be made.
  void drop();

  // After a failed connect no caller tries again before the backoff is over.
  void note_connect_failure(const std::string& why);
  void note_connected();
  [[nodiscard]] SteadyTime next_connect() const;
  [[nodiscard]] std::string last_connect_failure() const;

  [[nodiscard]] bool too_old(SteadyTime made) const { return clock.steady() - made >= options.lifetime_max; }
  std::vector<Idle> remove_expired();
  // Everything that is idle; from now on nothing is given out.
  std::deque<Idle> shut();
  [[nodiscard]] bool is_closed() const {
    const std::lock_guard lock(mutex);
    return closed;
  }

  const PoolOptions options;
  const Clock& clock;
  PoolMetrics metrics;

  mutable std::mutex mutex;
  std::deque<Idle>
      idle;  // the front has been idle longest; the back is used first, so that the front can grow old
  std::list<std::shared_ptr<Waiter>> line;
  std::size_t busy = 0;
  bool closed = false;
  Backoff backoff;
  SteadyTime connect_at;  // real time; not before this
  std::string connect_failure;

 private:
  // Hands places to those who wait, in order. Under the lock.
  void serve();
  void show();
};

// A place among the busy ones. Whoever holds it hands it on or gives it up, at the latest when it is
// destroyed.
class Place {
 public:
  explicit Place(std::shared_ptr<Lease::Core> core) : core_(std::move(core)) {}
  Place(Place&& other) noexcept = default;
  Place& operator=(Place&&) = delete;
  ~Place() {
    if (core_) core_->drop();
  }
  void give_back(std::unique_ptr<Connection> connection, SteadyTime made) {
    std::exchange(core_, nullptr)->give_back(std::move(connection), made);
  }
  std::shared_ptr<Lease::Core> hand_on() { return std::exchange(core_, nullptr); }

 private:
  std::shared_ptr<Lease::Core> core_;
};

}  // namespace todoke::pg
