// What is remembered of orders that are over, and for how long: the journal, the archives (orders with their
// results, FIX reports), a partition for each month, and the paper broker's book.
#pragma once

#include <cstdint>

#include "base/async.hpp"
#include "base/metrics.hpp"
#include "pg/connection.hpp"

namespace todoke::orders {

// Drops the partitions that ended `months` ago or earlier, and as much of the book, a bounded part of it for
// each call. A partition that somebody reads is left for the next call: orders would wait behind the lock
// that dropping asks for, so it asks for half a second only.
Task<void> drop_history(pg::Connection& connection, std::int64_t months, metrics::Counter& dropped,
                        Deadline deadline);

}  // namespace todoke::orders
