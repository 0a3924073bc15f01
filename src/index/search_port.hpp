// The index as the relay asks it (NIP-50).
#pragma once

#include "index/search.hpp"
#include "outbox/search_port.hpp"

namespace todoke::index {

class IndexSearch final : public outbox::SearchPort {
 public:
  // `pool` should not be the one whose connections the callers of find() hold: they would wait for each
  // other.
  IndexSearch(pg::Pool& pool, const Clock& clock) : pool_(pool), clock_(clock) {}
  // Throws UserError for a text that search() refuses. Fewer than asked for: there are no more, or finding
  // them would take more than one page's work.
  Task<std::vector<std::string>> find(outbox::SearchRequest request, Deadline deadline) override;

 private:
  pg::Pool& pool_;
  const Clock& clock_;
};

}  // namespace todoke::index
