#include "pg/pool_core.hpp"

#include "pg/error.hpp"

namespace todoke::pg {

namespace {
constexpr std::chrono::milliseconds kConnectBackoffFirst(50);
// Short enough that a restarted server is found soon, long enough that 16 callers don't keep it busy
// refusing.
constexpr std::chrono::milliseconds kConnectBackoffMost(2'000);

metrics::Gauge& connections(metrics::Registry& registry, const std::string& pool, const std::string& state) {
  return registry.gauges("todoke_pg_pool_connections", "Connections of a pool, by state.", {"pool", "state"})
      .with({pool, state});
}
}  // namespace

PoolMetrics::PoolMetrics(metrics::Registry& registry, const std::string& pool)
    : idle(connections(registry, pool, "idle")),
      busy(connections(registry, pool, "busy")),
      waiters(registry.gauges("todoke_pg_pool_waiters", "Callers that wait for a connection.", {"pool"})
                  .with({pool})),
      wait_seconds(registry
                       .histograms("todoke_pg_pool_wait_seconds", "How long callers waited for a connection.",
                                   {"pool"}, metrics::seconds_buckets())
                       .with({pool})),
      timeouts(
          registry
              .counters("todoke_pg_pool_timeouts_total", "Callers that got no connection in time.", {"pool"})
              .with({pool})),
      connects(registry.counter("todoke_pg_connects_total", "Connections made.")),
      connect_failures(
          registry.counter("todoke_pg_connect_failures_total", "Connections that could not be made.")),
      query_seconds(registry.histogram("todoke_pg_query_seconds", "How long statements and batches took.",
                                       metrics::seconds_buckets())) {}

Lease::Core::Core(PoolOptions o, const Clock& c, metrics::Registry& registry)
    : options(std::move(o)),
      clock(c),
      metrics(registry, options.name),
      backoff(kConnectBackoffFirst, kConnectBackoffMost) {}

std::optional<Lease::Core::Grant> Lease::Core::acquire_or_join(std::shared_ptr<Waiter>& waiter,
                                                               const Executor& executor) {
  const std::lock_guard lock(mutex);
  if (closed) throw ConnectionLost("the connection pool is closed");
  const bool room = !idle.empty() || busy < options.connections_max;
  if (!line.empty() || !room) {
    if (line.size() >= options.waiters_max) {
      throw PoolTimeout("too many callers wait for a database connection already");
    }
    waiter = std::make_shared<Waiter>(executor);
    line.push_back(waiter);
    show();
    return std::nullopt;
  }
  Grant grant;
  if (!idle.empty()) {
    grant = Grant{std::move(idle.back().connection), idle.back().made};
    idle.pop_back();
  }
  ++busy;
  show();
  return grant;
}

std::optional<Lease::Core::Grant> Lease::Core::leave_line(const std::shared_ptr<Waiter>& waiter) {
  const std::lock_guard lock(mutex);
  line.remove(waiter);
  show();
  return std::exchange(waiter->grant, std::nullopt);
}

void Lease::Core::give_back(std::unique_ptr<Connection> connection, SteadyTime made) {
  // Closed, if it is, after the lock is let go.
  std::unique_ptr<Connection> unwanted;
  const std::lock_guard lock(mutex);
  --busy;
  if (closed || too_old(made)) {
    unwanted = std::move(connection);
  } else {
    idle.push_back({std::move(connection), made, clock.steady()});
  }
  serve();
}

void Lease::Core::drop() {
  const std::lock_guard lock(mutex);
  --busy;
  serve();
}

void Lease::Core::serve() {
  while (!line.empty() && (!idle.empty() || busy < options.connections_max)) {
    auto waiter = std::move(line.front());
    line.pop_front();
    waiter->grant.emplace();
    if (!idle.empty()) {
      *waiter->grant = Grant{std::move(idle.back().connection), idle.back().made};
      idle.pop_back();
    }
    ++busy;
    waiter->woken.set_from_anywhere();
  }
  show();
}

void Lease::Core::show() {
  metrics.idle.set(static_cast<double>(idle.size()));
  metrics.busy.set(static_cast<double>(busy));
  metrics.waiters.set(static_cast<double>(line.size()));
}

void Lease::Core::note_connect_failure(const std::string& why) {
  metrics.connect_failures.add();
  const std::lock_guard lock(mutex);
  connect_failure = why;
  const auto now = std::chrono::steady_clock::now();
  // Several callers that fail together count as one failure.
  if (connect_at <= now) connect_at = now + backoff.next();
}

void Lease::Core::note_connected() {
  metrics.connects.add();
  const std::lock_guard lock(mutex);
  connect_failure.clear();
  connect_at = {};
  backoff.reset();
}

SteadyTime Lease::Core::next_connect() const {
  const std::lock_guard lock(mutex);
  return connect_at;
}

std::string Lease::Core::last_connect_failure() const {
  const std::lock_guard lock(mutex);
  return connect_failure;
}

std::vector<Lease::Core::Idle> Lease::Core::remove_expired() {
  std::vector<Idle> expired;
  const std::lock_guard lock(mutex);
  for (auto it = idle.begin(); it != idle.end();) {
    const bool unused =
        clock.steady() - it->since >= options.idle_max && idle.size() + busy > options.connections_idle_min;
    if (unused || too_old(it->made)) {
      expired.push_back(std::move(*it));
      it = idle.erase(it);
    } else {
      ++it;
    }
  }
  show();
  return expired;
}

std::deque<Lease::Core::Idle> Lease::Core::shut() {
  const std::lock_guard lock(mutex);
  closed = true;
  for (const auto& waiter : line) waiter->woken.set_from_anywhere();
  line.clear();
  auto taken = std::exchange(idle, {});
  show();
  return taken;
}

}  // namespace todoke::pg
