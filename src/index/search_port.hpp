// The index as the relay asks it (NIP-50).
#pragma once

#include "index/search.hpp"
#include "outbox/search_port.hpp"

namespace todoke::index {

// Pages of find() that may come short because most of what they looked at is no longer to be shown.
inline constexpr std::size_t kSparePagesMax = 2;

class IndexSearch final : public outbox::SearchPort {
 public:
  // `pool` should not be the one whose connections the callers of find() hold: they would wait for each
  // other.
  IndexSearch(pg::Pool& pool, const Clock& clock) : pool_(pool), clock_(clock) {}
  // Throws UserError for a text that search() refuses. Fewer than asked for, and `more`: finding the rest
  // would take more than kSparePagesMax pages beyond those that the limit fills.
  Task<outbox::SearchResult> find(outbox::SearchRequest request, Deadline deadline) override;

 private:
  pg::Pool& pool_;
  const Clock& clock_;
};

}  // namespace todoke::index
