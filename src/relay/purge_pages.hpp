// What the walks of retention and capacity share: the rows of a page that are due, and purging them.
#pragma once

#include <string>
#include <vector>

#include "pg/connection.hpp"
#include "relay/purge.hpp"

namespace todoke::relay {

struct DueEvents {
  std::vector<std::string> ids;
  std::vector<SystemTime> times;  // ingested_at
  std::vector<std::string> lifetimes;
};

// Of a row of page_of_…: the three columns from this one on.
DueEvents due_events(const pg::Row& row, std::size_t first_column);

// One transaction. Events that somebody has locked are left out; repeated while topic_usage is locked.
Task<Purged> purge_events(pg::Connection& connection, DueEvents due, Deadline deadline);

}  // namespace todoke::relay
