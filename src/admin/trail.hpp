// Proves from the chain of hashes that nothing of the audit was changed, taken out or put in later: of what
// operators did, of orders, and of the configuration.
//
// Reads everything once, in pages. What was audited before the chain began has no link and shows as put in by
// hand; the chain begins with the schema, so there is none. A forger who owns the database and makes every
// link anew is found by a head that was noted before: keep the line that `todoke audit --trail` prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pg/connection.hpp"

namespace todoke::admin {

struct BrokenLink {
  std::int64_t number = 0;  // 0: a row that has no link
  std::string source;       // audit, config or orders
  std::string row_key;
  std::string problem;
};

struct TrailCheck {
  std::int64_t links = 0;
  std::string head;                // the last hash, in hex
  std::vector<BrokenLink> broken;  // the first 1,000
};

Task<TrailCheck> check_trail(pg::Connection& connection, Deadline deadline);

}  // namespace todoke::admin
