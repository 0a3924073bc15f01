// What the relay asks of a search index (NIP-50): a small interface, so that neither knows the other.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "base/clock.hpp"
#include "pg/connection.hpp"

namespace todoke::outbox {

// Has a tag of this letter with one of these values.
struct SearchTag {
  char letter = 't';
  std::vector<std::string> values;
};

// All that is given holds for every hit; an empty list finds nothing.
struct SearchRequest {
  std::string text{};  // empty finds everything
  std::optional<std::vector<std::string>> ids{};
  std::optional<std::vector<std::string>> topics{};  // that the event was accepted for
  std::optional<std::vector<std::int32_t>> kinds{};
  std::optional<std::vector<std::string>> authors{};  // hex
  std::vector<SearchTag> tags{};                      // each letter once
  std::optional<std::int64_t> since{};                // inclusive, as is until
  std::optional<std::int64_t> until{};
  std::size_t limit = 50;
  std::string cursor{};  // where the index goes on (index/search.hpp); empty: from the best hit on
  // Told which connection works for it, and null when none does any more; so the asker can end it. May be
  // empty.
  std::function<void(pg::Connection*)> on_connection{};
};

struct SearchResult {
  std::vector<std::string> ids;     // the best first
  std::vector<std::int64_t> ranks;  // of each, 0 to 1e9
  bool more = false;                // there may be more than these
  std::string cursor;               // where the next page begins, if there is one
};

class SearchPort {
 public:
  virtual ~SearchPort() = default;
  // Up to `limit` events. A hit may have lost its effect a moment ago, and a tag may be taken for another by
  // its hash: the caller looks.
  virtual Task<SearchResult> find(SearchRequest request, Deadline deadline) = 0;
};

}  // namespace todoke::outbox
