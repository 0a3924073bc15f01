// Searching the index: event ids by rank.
//
// Rank is relevance of the text (60 %) and recency (40 %, half of it after three days). The newest 1,000
// matches are ranked first and come first, then the next 1,000, and so on: so the work of a page is bounded
// however many documents match, and paging reaches all of them.
//
// Pages. A cursor holds the time that ages are counted from, the bounds of the thousand that is being ranked,
// and the rank and id of the last result. A document has the same rank on every page, so none is shown twice
// and none is left out, whatever is added or removed meanwhile; what is added after the first page is seen
// where it ranks behind the cursor.
//
// What is deleted, superseded, expired or purged is not shown, also when the index does not know of it yet.
//
// Cost: one round trip a page (up to kWindowsMax where most of a thousand is no longer to be shown). A page
// goes by what is rare in the query: the words, a topic, a tag, an author, a kind or ids; where all is
// frequent, by time. Ranking a thousand documents takes some 10 ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "outbox/search_port.hpp"
#include "pg/pool.hpp"

namespace todoke::index {

// Of one page: what is ranked at once.
inline constexpr std::size_t kSearchLimitMax = 1'000;
// Values of one list of a query, as in the filters of the relay.
inline constexpr std::size_t kSearchValuesMax = 2'000;
// Letters of tags in one query, as in the filters of the relay.
inline constexpr std::size_t kSearchTagsMax = 8;
inline constexpr std::size_t kCandidatesMax = 1'000;
// Thousands that one call looks through for a page.
inline constexpr int kWindowsMax = 3;
// Whatever the caller's deadline: an index that answers later than this is not worth waiting for.
inline constexpr std::chrono::milliseconds kSearchTimeMax{5'000};

// `limit`: more than kSearchLimitMax is that. `cursor`: of the page before.
using SearchQuery = outbox::SearchRequest;

struct SearchHit {
  std::string event_id;
  std::int64_t created_at = 0;
  std::int64_t rank = 0;  // 0 to 1e9
};

struct SearchPage {
  std::vector<SearchHit> hits;  // by rank, then id, descending, within a thousand
  // Empty: that was all. A page may be short and have one.
  std::string cursor;
};

// Refuses text, lists and cursors that are not right. Throws what pg throws: pg::DeadlineExceeded is a search
// that took too long.
Task<Expected<SearchPage>> search(pg::Pool& pool, const Clock& clock, SearchQuery query, Deadline deadline);

// Pages of find() that may come short because most of what they looked at is no longer to be shown.
inline constexpr std::size_t kSparePagesMax = 2;

// The index as the relay asks it (NIP-50): as many pages as the limit needs.
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
