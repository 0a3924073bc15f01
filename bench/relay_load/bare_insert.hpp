// What a durable write costs without a relay: one row a transaction, through libpq, with the pauses of the
// case beside it. What an OK takes beyond this is the relay's own.
#pragma once

#include <cstddef>
#include <string>

#include "relay_load/result.hpp"

namespace todoke::bench {

// `count` INSERTs of a text of `bytes` into a table of their own, which is dropped at the end; 10 ms between
// them. Throws CaseFailed.
Latencies bare_inserts(const std::string& database, std::size_t count, std::size_t bytes);

}  // namespace todoke::bench
