// What must hold, as queries over orders.*, the history of every row (watch.hpp) and what the test saw from
// outside. Each finds the rows that break it.
//
// P1 to P10, P13; P14 is counted at the broker (run.cpp). P11 and P12 are about consumers of the log and are
// tested with it (tests/outbox).
#pragma once

#include <string>

#include "link.hpp"

namespace todoke::test {

struct Limits {
  int attempts_max = 0;
  int backoff_first_sec = 0;  // after the first failure
  int backoff_sec = 0;        // after every further one
  bool can_find = false;      // the broker can be asked
};

// Holds at every moment: no order without its ledger row, the two never in different outcomes. Empty, or the
// rows.
std::string broken_in_snapshot(Link& link);

// Holds when everything is settled. A paragraph for each property that is broken, with its rows.
std::string broken_at_end(Link& link, const Limits& limits);

}  // namespace todoke::test
