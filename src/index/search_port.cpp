#include "index/search_port.hpp"

#include <utility>

namespace todoke::index {

Task<outbox::SearchResult> IndexSearch::find(outbox::SearchRequest request, Deadline deadline) {
  if (deadline.left() > kSearchTimeMax) deadline = Deadline::after(kSearchTimeMax);
  SearchQuery query;
  query.text = std::move(request.text);
  query.ids = std::move(request.ids);
  query.topics = std::move(request.topics);
  query.kinds = std::move(request.kinds);
  query.authors = std::move(request.authors);
  query.tags = std::move(request.tags);
  query.since = request.since;
  query.until = request.until;
  query.on_connection = std::move(request.on_connection);
  outbox::SearchResult result;
  const auto pages_max = request.limit / kSearchLimitMax + 1 + kSparePagesMax;
  for (std::size_t i = 0; i < pages_max && result.ids.size() < request.limit; ++i) {
    query.limit = request.limit - result.ids.size();
    auto page = co_await search(pool_, clock_, query, deadline);
    if (!page) throw UserError(page.error().message);
    for (auto& hit : page->hits) result.ids.push_back(std::move(hit.event_id));
    query.cursor = std::move(page->cursor);
    result.more = !query.cursor.empty();
    if (!result.more) break;
  }
  co_return result;
}

}  // namespace todoke::index
