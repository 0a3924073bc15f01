#include "index/search.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <utility>

#include "index/document_tags.hpp"
#include "index/search_cursor.hpp"
#include "index/search_sql.hpp"
#include "index/text_query.hpp"

namespace todoke::index {
namespace {

// Events that arrive after a window's first page must not push the window's oldest events out.
constexpr std::size_t kLateArrivalsMax = 1'000;
// The floor of a window below which nothing was found when it was first looked at.
constexpr std::int64_t kBeforeAll = std::numeric_limits<std::int64_t>::min();
// The client's deadline comes first; this is for a server whose client is gone.
constexpr std::chrono::milliseconds kServerGrace{1'000};

std::int64_t unix_seconds(const Clock& clock) {
  return std::chrono::duration_cast<std::chrono::seconds>(clock.now().time_since_epoch()).count();
}

bool is_too_long(const auto& list) {
  return list && list->size() > kSearchValuesMax;
}

bool has_too_long_list(const SearchQuery& query) {
  return is_too_long(query.ids) || is_too_long(query.topics) || is_too_long(query.kinds) ||
         is_too_long(query.authors) || std::any_of(query.tags.begin(), query.tags.end(), [](const auto& tag) {
           return tag.values.size() > kSearchValuesMax;
         });
}

bool is_empty(const auto& list) {
  return list && list->empty();
}

bool has_empty_list(const SearchQuery& query) {
  return is_empty(query.ids) || is_empty(query.topics) || is_empty(query.kinds) || is_empty(query.authors) ||
         std::any_of(query.tags.begin(), query.tags.end(),
                     [](const auto& tag) { return tag.values.empty(); });
}

using TagNumbers = std::array<std::optional<std::vector<std::int64_t>>, kSearchTagsMax>;

TagNumbers numbers_of(const std::vector<outbox::SearchTag>& tags) {
  TagNumbers numbers;
  for (std::size_t i = 0; i < tags.size(); ++i) {
    auto& list = numbers.at(i).emplace();
    for (const auto& value : tags[i].values) list.push_back(tag_number(tags[i].letter, value));
  }
  return numbers;
}

struct Window {
  std::vector<SearchHit> hits;
  std::size_t candidates = 0;
  Place oldest;
  std::int64_t newest = 0;
};

Window read_window(const pg::Result& rows) {
  Window window;
  for (const auto& row : rows) {
    window.candidates = static_cast<std::size_t>(row.get<std::int64_t>(0));
    if (window.candidates == 0) break;
    window.newest = row.get<std::int64_t>(1);
    window.oldest = {row.get<std::int64_t>(2), row.get<std::string>(3)};
    if (row.is_null(4)) break;
    window.hits.push_back({row.get<std::string>(4), row.get<std::int64_t>(5), row.get<std::int64_t>(6)});
  }
  return window;
}

Task<Window> search_window(pg::Connection& connection, const SearchQuery& query, const TextQuery& text,
                           const SearchCursor& at, std::size_t limit, Deadline deadline) {
  const auto number_of = [](const std::optional<Place>& place) {
    return place ? std::optional(place->created_at) : std::nullopt;
  };
  const auto id_of = [](const auto& place) { return place ? std::optional(place->event_id) : std::nullopt; };
  const auto candidates = at.floor ? kCandidatesMax + kLateArrivalsMax : kCandidatesMax;
  pg::Params params;
  params.add(text.finds == TextQuery::Finds::tokens ? std::optional(text.tsquery) : std::nullopt)
      .add(query.topics)
      .add(query.kinds)
      .add(query.authors)
      .add(query.since)
      .add(query.until)
      .add(at.as_of)
      .add(number_of(at.ceiling))
      .add(id_of(at.ceiling))
      .add(number_of(at.floor))
      .add(id_of(at.floor))
      .add(at.last ? std::optional(at.last->rank) : std::nullopt)
      .add(static_cast<std::int64_t>(limit))
      .add(static_cast<std::int64_t>(candidates))
      .add(id_of(at.last))
      .add(query.ids);
  for (const auto& numbers : numbers_of(query.tags)) params.add(numbers);
  const auto server_max =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()) + kServerGrace;
  pg::Batch batch;
  batch.add(sql::kSetUpSearch, pg::Params(std::to_string(server_max.count())));
  batch.add(sql::kSearchDocuments, std::move(params));
  const auto results = co_await connection.run(std::move(batch), deadline);
  co_return read_window(results[1]);
}

// Where the next page begins; nothing when the search is over.
std::optional<SearchCursor> after(const SearchCursor& at, const Window& window, bool page_is_full) {
  auto next = at;
  if (!next.floor) {
    next.floor = window.candidates < kCandidatesMax ? Place{kBeforeAll, ""} : window.oldest;
    if (!next.ceiling) next.ceiling = Place{window.newest + 1, ""};
  }
  if (page_is_full) {
    next.last = LastHit{window.hits.back().rank, window.hits.back().event_id};
    return next;
  }
  if (next.floor->created_at == kBeforeAll) return std::nullopt;
  next.ceiling = next.floor;
  next.floor.reset();
  next.last.reset();
  return next;
}

class Told {
 public:
  Told(const std::function<void(pg::Connection*)>& whom, pg::Connection& connection) : whom_(whom) {
    if (whom_) whom_(&connection);
  }
  ~Told() {
    if (whom_) whom_(nullptr);
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

 private:
  const std::function<void(pg::Connection*)>& whom_;
};

}  // namespace

Task<Expected<SearchPage>> search(pg::Pool& pool, const Clock& clock, SearchQuery query, Deadline deadline) {
  auto text = parse_text_query(query.text);
  if (!text) co_return tl::unexpected(text.error());
  if (has_too_long_list(query)) co_return refuse("a list has at most 2000 values");
  if (query.tags.size() > kSearchTagsMax) co_return refuse("a search has at most 8 letters of tags");
  SearchCursor at;
  at.as_of = unix_seconds(clock);
  if (!query.cursor.empty()) {
    auto given = parse_cursor(query.cursor);
    if (!given) co_return refuse("cursor is none that a search has given");
    at = std::move(*given);
  }
  SearchPage page;
  const auto limit = std::min(query.limit, kSearchLimitMax);
  if (limit == 0 || text->finds == TextQuery::Finds::nothing || has_empty_list(query)) co_return page;

  if (deadline.left() > kSearchTimeMax) deadline = Deadline::after(kSearchTimeMax);
  const auto lease = co_await pool.acquire(deadline);
  const Told told(query.on_connection, *lease);
  std::optional<SearchCursor> next = at;
  for (int i = 0; i < kWindowsMax && next && page.hits.size() < limit; ++i) {
    const auto wanted = limit - page.hits.size();
    const auto window = co_await search_window(*lease, query, *text, *next, wanted, deadline);
    page.hits.insert(page.hits.end(), window.hits.begin(), window.hits.end());
    next = after(*next, window, window.hits.size() == wanted);
  }
  if (next) page.cursor = to_text(*next);
  co_return page;
}

Task<outbox::SearchResult> IndexSearch::find(outbox::SearchRequest request, Deadline deadline) {
  if (deadline.left() > kSearchTimeMax) deadline = Deadline::after(kSearchTimeMax);
  const auto wanted = request.limit;
  const auto pages_max = wanted / kSearchLimitMax + 1 + kSparePagesMax;
  outbox::SearchResult result;
  for (std::size_t i = 0; i < pages_max && result.ids.size() < wanted; ++i) {
    request.limit = wanted - result.ids.size();
    auto page = co_await search(pool_, clock_, request, deadline);
    if (!page) throw UserError(page.error().message);
    for (auto& hit : page->hits) {
      result.ids.push_back(std::move(hit.event_id));
      result.ranks.push_back(hit.rank);
    }
    request.cursor = std::move(page->cursor);
    result.cursor = request.cursor;
    result.more = !request.cursor.empty();
    if (!result.more) break;
  }
  co_return result;
}

}  // namespace todoke::index
