#include "app/pools.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace todoke::app {
namespace {

// No caller keeps a connection of the control pool for longer than a moment.
constexpr std::size_t kControlMax = 3;
// Each service of the background has at most two.
constexpr std::size_t kBackgroundMax = 8;

pg::PoolOptions room(pg::PoolOptions options, std::string name, std::size_t connections, Priority backends) {
  options.connect.application_name = "todoke " + name + " pool";
  options.name = std::move(name);
  options.connections_max = connections;
  options.backends = backends;
  return options;
}

// A read has one process: the workers of a parallel plan would take the other processors, at full priority.
// No compiled plans: for a page of a thousand rows compiling costs more than it saves.
// One plan for all values: the relay has chosen the index (docs/decisions/0014). A plan for certain values
// takes 1 ms each time, and on a table without statistics it reads and sorts all events of an author instead
// of the last of them by index: 27 ms instead of 0.3 among 8,000.
pg::PoolOptions for_the_public(pg::PoolOptions options) {
  options.connect.settings.emplace_back(
      "options", "-c max_parallel_workers_per_gather=0 -c plan_cache_mode=force_generic_plan -c jit=off");
  return options;
}

}  // namespace

PoolShares share_out(std::size_t connections) {
  PoolShares shares;
  shares.control = std::clamp<std::size_t>(connections / 8, 1, kControlMax);
  shares.background = std::clamp<std::size_t>(connections * 5 / 16, 3, kBackgroundMax);
  const auto rest = connections - shares.control - shares.background;
  shares.reads = std::max<std::size_t>(1, rest / 2);
  shares.orders = std::max<std::size_t>(1, rest - shares.reads);
  return shares;
}

Pools::Pools(const pg::PoolOptions& whole, bool own_server, const Clock& clock, metrics::Registry& registry)
    : control(room(whole, "control", share_out(whole.connections_max).control, Priority::ordinary), clock,
              registry),
      background(room(whole, "background", share_out(whole.connections_max).background,
                      own_server ? Priority::background : Priority::ordinary),
                 clock, registry),
      orders(room(whole, "orders", share_out(whole.connections_max).orders, Priority::ordinary), clock,
             registry),
      reads(for_the_public(room(whole, "reads", share_out(whole.connections_max).reads,
                                own_server ? Priority::last : Priority::ordinary)),
            clock, registry) {}

void Pools::close_expired() {
  for (auto* pool : {&control, &background, &orders, &reads}) pool->close_expired();
}

void Pools::close() {
  for (auto* pool : {&control, &background, &orders, &reads}) pool->close();
}

}  // namespace todoke::app
