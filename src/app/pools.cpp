#include "app/pools.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace todoke::app {
namespace {

// Each service of the control room has at most one connection, and only those that work on the log have one
// for longer than a moment: the monitor, retention, a consumer, the sweeper of the index. Two more are for
// those who just look.
constexpr std::size_t kControlMax = 6;

pg::PoolOptions room(pg::PoolOptions options, std::string name, std::size_t connections) {
  options.name = std::move(name);
  options.connections_max = connections;
  return options;
}

// A read has one process: workers of a parallel plan would take the other processors from everybody else, at
// full priority. What compiling a plan saves, a page of a thousand rows does not bring back.
pg::PoolOptions for_the_public(pg::PoolOptions options, int nice) {
  options.backend_nice = nice;
  options.connect.settings.emplace_back("options", "-c max_parallel_workers_per_gather=0 -c jit=off");
  return options;
}

}  // namespace

PoolShares share_out(std::size_t connections) {
  PoolShares shares;
  shares.control = std::clamp<std::size_t>(connections * 3 / 8, 1, kControlMax);
  const auto rest = connections - shares.control;
  shares.reads = std::max<std::size_t>(1, rest / 2);
  shares.orders = std::max<std::size_t>(1, rest - shares.reads);
  return shares;
}

Pools::Pools(const pg::PoolOptions& whole, bool own_server, const Clock& clock, metrics::Registry& registry)
    : control(room(whole, "control", share_out(whole.connections_max).control), clock, registry),
      orders(room(whole, "orders", share_out(whole.connections_max).orders), clock, registry),
      reads(for_the_public(room(whole, "reads", share_out(whole.connections_max).reads),
                           own_server ? kReadsNice : 0),
            clock, registry) {}

void Pools::close_expired() {
  for (auto* pool : {&control, &orders, &reads}) pool->close_expired();
}

void Pools::close() {
  for (auto* pool : {&control, &orders, &reads}) pool->close();
}

}  // namespace todoke::app
