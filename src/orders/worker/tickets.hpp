// Inside this room: lists of tickets, in their order, for and from the worker's statements.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "pg/result.hpp"
#include "queue/ticket.hpp"

namespace todoke::orders {

using Tickets = std::vector<queue::Ticket>;

inline Tickets sorted(Tickets tickets) {
  std::sort(tickets.begin(), tickets.end());
  return tickets;
}

// Of rows that begin with id and claim_no.
inline queue::Ticket ticket_of(const pg::Row& row) {
  return {{row.get<std::int64_t>(0)}, {row.get<std::int64_t>(1)}};
}
inline Tickets tickets_of(const pg::Result& rows) {
  Tickets tickets;
  for (const auto& row : rows) tickets.push_back(ticket_of(row));
  return sorted(std::move(tickets));
}

inline bool has(const Tickets& tickets, const queue::Ticket& ticket) {
  return std::binary_search(tickets.begin(), tickets.end(), ticket);
}

inline Tickets without(const Tickets& tickets, const Tickets& those) {
  Tickets left;
  std::set_difference(tickets.begin(), tickets.end(), those.begin(), those.end(), std::back_inserter(left));
  return left;
}

// As parameters: rows are locked in the order of ids.
struct TicketArrays {
  explicit TicketArrays(Tickets tickets) {
    for (const auto& ticket : sorted(std::move(tickets))) {
      ids.push_back(ticket.id.value);
      claims.push_back(ticket.claim.value);
    }
  }
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> claims;
};

}  // namespace todoke::orders
