#include "pg/pool.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/priority.hpp"
#include "pg/error.hpp"
#include "pg/pool_core.hpp"

namespace todoke::pg {

namespace {
// While a connect is put off, how often to look whether the pool was closed meanwhile.
constexpr std::chrono::milliseconds kClosedLook(100);

using std::chrono::steady_clock;

// A transaction that was left open holds locks; its rollback has little to wait for.
constexpr std::chrono::seconds kRollbackMax(5);

}  // namespace

// The steps of acquire() and of giving back, with access to what a Lease keeps to itself.
struct PoolInside {
  using Core = Lease::Core;

  // Stands in line until it is dropped. A grant to a caller that is gone goes back to the pool.
  class InLine {
   public:
    InLine(std::shared_ptr<Core> core, std::shared_ptr<Core::Waiter> waiter)
        : core_(std::move(core)), waiter_(std::move(waiter)) {}
    InLine(const InLine&) = delete;
    InLine& operator=(const InLine&) = delete;
    ~InLine() {
      if (!waiter_) return;
      auto grant = leave_line();
      if (!grant) return;
      if (grant->connection) {
        core_->give_back(std::move(grant->connection), grant->made);
      } else {
        core_->drop();
      }
    }
    std::optional<Core::Grant> leave_line() { return core_->leave_line(std::exchange(waiter_, nullptr)); }

   private:
    std::shared_ptr<Core> core_;
    std::shared_ptr<Core::Waiter> waiter_;
  };

  static Task<Core::Grant> get_place(std::shared_ptr<Core> core, Executor executor, SteadyTime until) {
    std::shared_ptr<Core::Waiter> waiter;
    auto grant = core->acquire_or_join(waiter, executor);
    if (grant) co_return std::move(*grant);
    InLine in_line(core, waiter);
    const bool woken = co_await waiter->woken.wait_for(until - steady_clock::now());
    grant = in_line.leave_line();
    if (grant) co_return std::move(*grant);
    if (woken) throw ConnectionLost("the connection pool is closed");
    throw PoolTimeout("no database connection became free in time");
  }

  static Task<std::unique_ptr<Connection>> connect(std::shared_ptr<Core> core, SteadyTime until) {
    while (true) {
      if (core->is_closed()) throw ConnectionLost("the connection pool is closed");
      const auto left = until - steady_clock::now();
      if (left.count() <= 0) {
        throw PoolTimeout(fmt::format("no database connection could be made in time; the last failure: {}",
                                      core->last_connect_failure()));
      }
      const auto pause = core->next_connect() - steady_clock::now();
      if (pause.count() > 0) {
        const std::chrono::nanoseconds nap = std::min(pause, left);
        co_await sleep_for(std::min<std::chrono::nanoseconds>(nap, kClosedLook));
        continue;
      }
      auto options = core->options.connect;
      options.query_seconds = &core->metrics.query_seconds;
      const auto limit = std::min<std::chrono::nanoseconds>(left, kConnectMax);
      try {
        auto connection = co_await Connection::connect(std::move(options), Deadline::after(limit));
        core->note_connected();
        if (!set_priority(connection->backend_pid(), core->options.backends))
          log::debug("pg", "the priority of a backend was not changed", {{"pid", connection->backend_pid()}});
        co_return connection;
      } catch (const UserError&) {
        core->note_connect_failure("the connection string can't be understood");
        throw;
      } catch (const DatabaseError& error) {
        core->note_connect_failure(error.what());
        log::warning("pg", "connect failed", {{"error", error.what()}});
      }
    }
  }

  static Task<void> roll_back_and_give_back(Place place, std::unique_ptr<Connection> connection,
                                            SteadyTime made) {
    co_await connection->end_transaction(Deadline::after(kRollbackMax));
    connection->detach();
    if (connection->usable() && !connection->in_transaction()) place.give_back(std::move(connection), made);
  }
};

Lease::Lease(std::shared_ptr<Core> core, std::unique_ptr<Connection> connection, SteadyTime made,
             Executor executor)
    : core_(std::move(core)),
      connection_(std::move(connection)),
      made_(made),
      executor_(std::move(executor)) {}

Lease::~Lease() {
  if (!connection_) return;
  Place place(std::move(core_));
  // The one that is not taken back is closed before its place is given up, so that the limit holds on the
  // server too.
  auto connection = std::move(connection_);
  if (!connection->usable()) {
    connection.reset();
    return;
  }
  if (!connection->in_transaction()) {
    connection->detach();
    place.give_back(std::move(connection), made_);
    return;
  }
  spawn(executor_, PoolInside::roll_back_and_give_back(std::move(place), std::move(connection), made_),
        [](const std::exception_ptr& error) {
          if (error) log::debug("pg", "rollback failed, connection closed", {{"error", describe(error)}});
        });
}

Pool::Pool(PoolOptions options, const Clock& clock, metrics::Registry& registry)
    : core_(std::make_shared<Lease::Core>(std::move(options), clock, registry)) {}

Pool::~Pool() {
  close();
}

Task<Lease> Pool::acquire(Deadline deadline) {
  const auto core = core_;
  const auto executor = co_await asio::this_coro::executor;
  const auto began = steady_clock::now();
  const auto until = std::min(deadline.at(), began + core->options.wait_max);

  try {
    auto grant = co_await PoolInside::get_place(core, executor, until);
    Place place(core);
    auto connection = std::move(grant.connection);
    if (connection && (core->too_old(grant.made) || !connection->still_connected())) connection.reset();
    if (!connection) {
      connection = co_await PoolInside::connect(core, until);
      grant.made = core->clock.steady();
    }
    core->metrics.wait_seconds.observe(std::chrono::duration<double>(steady_clock::now() - began).count());
    co_return Lease(place.hand_on(), std::move(connection), grant.made, executor);
  } catch (const PoolTimeout&) {
    core->metrics.timeouts.add();
    throw;
  }
}

void Pool::close_expired() {
  core_->remove_expired();
}

void Pool::close() {
  core_->shut();
}

std::size_t Pool::connections_max() const {
  return core_->options.connections_max;
}

bool Pool::can_connect() const {
  return core_->last_connect_failure().empty();
}

Pool::Counts Pool::counts() const {
  const std::lock_guard lock(core_->mutex);
  return {core_->idle.size(), core_->busy, core_->line.size()};
}

}  // namespace todoke::pg
