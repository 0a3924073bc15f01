// How the orders of the whole database stand, in a few numbers: for health, metrics and operators. One
// statement by index; orders in doubt are counted up to a hundred thousand.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/async.hpp"
#include "pg/connection.hpp"

namespace todoke::orders {

// A worker that was not seen for this long does not run.
inline constexpr std::chrono::seconds kWorkerGoneAfter{15};

struct OrderGauges {
  double oldest_pending_seconds = 0;  // of an order that could be sent now
  std::int64_t in_doubt = 0;          // those that were aborted so, too, until they are archived
  std::int64_t workers = 0;           // that run
  std::int64_t halts = 0;
  std::string adapters;  // of the workers that run, with commas between
  std::string
      orphaned;  // an adapter that an order in doubt, or one of a dead worker, needs and no worker has
};

Task<OrderGauges> read_gauges(pg::Connection& connection, Deadline deadline);

}  // namespace todoke::orders
