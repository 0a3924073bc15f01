#include "index/search_port.hpp"

#include <utility>

namespace todoke::index {

Task<std::vector<std::string>> IndexSearch::find(outbox::SearchRequest request, Deadline deadline) {
  SearchQuery query;
  query.text = std::move(request.text);
  query.topics = std::move(request.topics);
  query.kinds = std::move(request.kinds);
  query.authors = std::move(request.authors);
  query.since = request.since;
  query.until = request.until;
  query.limit = request.limit;
  auto page = co_await search(pool_, clock_, std::move(query), deadline);
  if (!page) throw UserError(page.error().message);
  std::vector<std::string> ids;
  ids.reserve(page->hits.size());
  for (auto& hit : page->hits) ids.push_back(std::move(hit.event_id));
  co_return ids;
}

}  // namespace todoke::index
