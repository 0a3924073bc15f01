// The rooms of a node's database connections: who waits for a connection in one of them does not wait for
// those of another. Together they are database.pool_max.
#pragma once

#include <cstddef>

#include "pg/pool.hpp"

namespace todoke::app {

// Stored reads for the public yield the processor to everything else: the thread that makes events of rows,
// and the backends of the embedded server.
inline constexpr int kReadsNice = 10;

struct PoolShares {
  std::size_t control = 1;
  std::size_t orders = 1;
  std::size_t reads = 1;
};

// `connections` is at least 3, as database.pool_max is.
PoolShares share_out(std::size_t connections);

struct Pools {
  // `whole` says what all have in common, and how many connections there are in all. `own_server`: the
  // server's processes are this node's.
  Pools(const pg::PoolOptions& whole, bool own_server, const Clock& clock, metrics::Registry& registry);

  void close_expired();
  void close();

  pg::Pool control;  // health, the kill switch, topics, configuration, consumers of the log and its retention
  pg::Pool orders;
  pg::Pool reads;  // REQ, COUNT, search
};

}  // namespace todoke::app
