// The pools of a node's database connections: a caller that waits in one of them does not wait for the
// connections of another. Together they are database.pool_max.
#pragma once

#include <cstddef>

#include "pg/pool.hpp"

namespace todoke::app {

struct PoolShares {
  std::size_t control = 1;
  std::size_t background = 3;
  std::size_t orders = 1;
  std::size_t reads = 1;
};

// `connections` is at least 6, as database.pool_max is. The consumers of the log and their upkeep hold up to
// two for long, and need one more to renew what they hold.
PoolShares share_out(std::size_t connections);

struct Pools {
  // `whole` says what all have in common, and how many connections there are in all. `own_server`: the
  // server's processes are this node's, and those behind `background` and `reads` give way to the others.
  Pools(const pg::PoolOptions& whole, bool own_server, const Clock& clock, metrics::Registry& registry);

  void close_expired();
  void close();

  pg::Pool control;     // health, the kill switch, pressure, topics, configuration: each for a moment
  pg::Pool background;  // consumers of the log, its retention, upkeep of the index
  pg::Pool orders;
  pg::Pool reads;  // REQ, COUNT, search
};

}  // namespace todoke::app
