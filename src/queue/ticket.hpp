// Which row a worker holds, and the number of the claim by which it holds it.
#pragma once

#include <compare>
#include <cstdint>

namespace todoke::queue {

struct JobId {
  std::int64_t value = 0;
  auto operator<=>(const JobId&) const = default;
};

// Counts the claims of a row and never goes back: a worker that shows an older one has lost the row.
struct ClaimNo {
  std::int64_t value = 0;
  auto operator<=>(const ClaimNo&) const = default;
};

struct Ticket {
  JobId id;
  ClaimNo claim;
  auto operator<=>(const Ticket&) const = default;
};

}  // namespace todoke::queue
