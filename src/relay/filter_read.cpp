#include "relay/filter_read.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "nostr/kinds.hpp"
#include "relay/event_rows.hpp"
#include "relay/query_sql.hpp"

namespace todoke::relay {
namespace {

using nostr::Filter;

// Rows of a page: what was asked for and a little more, within these.
constexpr std::size_t kPageRowsMin = 32;
// Of a set, where the rows of the index tell all that is asked: 30 to 60 ms.
constexpr std::size_t kSetRowsMax = 10'000;
// Text of the events that are fetched at once. A page of small events comes in one piece.
constexpr std::int64_t kPieceBytes = 1024 * 1024;

PageCursor cursor_of(const pg::Row& row) {
  return {row.get<std::int64_t>(0), row.get<std::string>(1)};
}

struct PageQuery {
  pg::Statement statement;
  pg::Params params;
};

PageQuery page_query(const Filter& filter, const Way& way, const PageCursor& cursor, std::int64_t oldest,
                     std::size_t rows) {
  oldest = std::max(oldest, filter.since.value_or(oldest));
  pg::Params params(cursor.created_at, cursor.id, oldest, static_cast<std::int64_t>(rows));
  switch (way.path) {
    case Path::topic:
    case Path::topic_kind:
    case Path::topic_author:
      params.add(way.values).add(kinds_of(filter)).add(authors_of(filter));
      if (way.path == Path::topic_kind) return {sql::kKeysByTopicKind, std::move(params)};
      if (way.path == Path::topic_author) return {sql::kKeysByTopicAuthor, std::move(params)};
      return {sql::kKeysByTopic, std::move(params)};
    case Path::tag:
      params.add(std::string(1, way.letter)).add(way.values);
      return {sql::kKeysByTag, std::move(params)};
    case Path::t:
      params.add(way.values);
      return {sql::kKeysByT, std::move(params)};
    case Path::author:
      params.add(authors_of(filter).value());
      return {sql::kKeysByAuthor, std::move(params)};
    case Path::author_kind:
      params.add(authors_of(filter).value()).add(kinds_of(filter).value());
      return {sql::kKeysByAuthorKind, std::move(params)};
    case Path::kind:
      params.add(kinds_of(filter).value());
      return {sql::kKeysByKind, std::move(params)};
    case Path::time:
      return {sql::kKeysByTime, std::move(params)};
    case Path::ids:
      params.add(hexes_of(*filter.ids));
      return {sql::kKeysById, std::move(params)};
  }
  throw std::logic_error("a path without a statement");
}

PageQuery fetch_query(const EventKeys& keys, std::size_t first, std::size_t count) {
  const auto part = [&](const auto& list) { return std::span(list).subspan(first, count); };
  pg::Params params(part(keys.ids), kPieceBytes);
  if (keys.times.empty()) return {sql::kEventsById, std::move(params)};
  params.add(part(keys.times)).add(part(keys.lifetimes));
  return {sql::kEventsOf, std::move(params)};
}

nostr::Kind kind_of(const pg::Row& row) {
  return static_cast<nostr::Kind>(row.get<std::int32_t>(4));
}

TakeEvent into(StoredPage& page, std::size_t limit) {
  return [&page, left = limit](LiveEventPtr live) mutable {
    if (left == 0) {
      page.cut();
      return false;
    }
    --left;
    return page.add(std::move(live));
  };
}

}  // namespace

std::optional<KindNumbers> kinds_of(const Filter& filter) {
  if (!filter.kinds) return std::nullopt;
  return KindNumbers(filter.kinds->values().begin(), filter.kinds->values().end());
}

std::optional<Hexes> authors_of(const Filter& filter) {
  if (!filter.authors) return std::nullopt;
  return hexes_of(*filter.authors);
}

void EventKeys::add(const pg::Row& row) {
  ids.push_back(row.get<std::string>(1));
  times.push_back(row.get<SystemTime>(2));
  lifetimes.push_back(row.get<std::string>(3));
}

FilterRead::FilterRead(const ReadScope& scope, const Filter& filter, ReadPlan plan)
    : scope_(scope),
      filter_(filter),
      plan_(std::move(plan)),
      choice_(plan_.ways.size()),
      cursor_{filter.until.value_or(std::numeric_limits<std::int64_t>::max()), ""} {}

Task<void> FilterRead::newest(std::size_t limit, StoredPage& page) {
  const auto take = into(page, limit);
  auto rows = std::clamp(limit + 1, kPageRowsMin, kPageRowsMax);
  for (bool more = true; more; rows = kPageRowsMax) more = co_await next_page(rows, page.oldest(), take);
}

Task<void> FilterRead::ranked(Hexes ids, std::size_t limit, StoredPage& page) {
  const EventKeys keys{std::move(ids)};
  const auto take = into(page, limit);
  co_await take_events(keys, take);
}

Task<void> FilterRead::by_seq(nostr::Seq after, std::size_t limit, StoredPage& page) {
  auto left = limit;
  auto last = after;
  const TakeEvent take = [&](LiveEventPtr live) {
    if (left == 0) {
      page.cut_after(last);
      return false;
    }
    --left;
    last = live->seq;
    return page.add(std::move(live));
  };
  for (bool more = true; more && !scope_.interrupt.has_ended();) {
    pg::Params params(after.value, scope_.head.value, static_cast<std::int64_t>(kPageRowsMax));
    if (plan_.by_links) params.add(filter_.tag('t')->values());
    const auto statement = plan_.by_links ? sql::kKeysByTopicSeq : sql::kKeysBySeq;
    const auto keys = co_await scope_.connection.query(statement, std::move(params), scope_.deadline);
    more = co_await take_page(keys, take) && keys.size() == kPageRowsMax;
    if (more) after = {keys[keys.size() - 1].get<std::int64_t>(0)};
  }
}

Task<bool> FilterRead::next_page(std::size_t rows, std::int64_t oldest, const TakeEvent& take) {
  if (scope_.interrupt.has_ended()) co_return false;
  auto query = page_query(filter_, plan_.ways[choice_.next()], cursor_, oldest, rows);
  const auto keys =
      co_await scope_.connection.query(query.statement, std::move(query.params), scope_.deadline);
  const bool goes_on = co_await take_page(keys, take);
  if (!goes_on || keys.size() < rows) co_return false;
  pass(keys);
  co_return true;
}

Task<bool> FilterRead::next_set_page(std::vector<nostr::NegItem>& found) {
  const TakeEvent take = [&](const LiveEventPtr& live) {
    found.push_back({live->event->created_at(), live->event->id()});
    return true;
  };
  constexpr auto kOldest = std::numeric_limits<std::int64_t>::min();
  if (!rows_decide()) co_return co_await next_page(kPageRowsMax, kOldest, take);
  auto query = page_query(filter_, plan_.ways[choice_.next()], cursor_, kOldest, kSetRowsMax);
  const auto rows =
      co_await scope_.connection.query(query.statement, std::move(query.params), scope_.deadline);
  EventKeys to_fetch;
  std::string_view last;
  for (const auto& row : rows) {
    const auto id = row.get<std::string_view>(1);
    if (std::exchange(last, id) == id || !passes_as_row(row)) continue;
    if (is_for_parties(row)) {
      to_fetch.add(row);
    } else {
      found.push_back({row.get<std::int64_t>(0), nostr::EventId::from_hex(id).value()});
    }
  }
  if (!to_fetch.ids.empty()) co_await take_events(to_fetch, take);
  if (rows.size() < kSetRowsMax) co_return false;
  pass(rows);
  co_return true;
}

void FilterRead::resume(WayChoice choice, PageCursor cursor) {
  choice_ = choice;
  cursor_ = std::move(cursor);
}

// The next page begins after this one.
void FilterRead::pass(const pg::Result& page) {
  // From its first row: where the cursor stood, nothing may have been for years.
  const auto newest = page[0].get<std::int64_t>(0);
  cursor_ = cursor_of(page[page.size() - 1]);
  choice_.advanced(static_cast<double>(newest) - static_cast<double>(cursor_.created_at), page.size());
}

// Whether the columns of a page by links or of events answer the whole filter.
bool FilterRead::rows_decide() const {
  return plan_.by_links ? plan_.links_decide : !plan_.by_mark && filter_.tags.empty() && !filter_.ids;
}

bool FilterRead::passes_as_row(const pg::Row& row) const {
  const auto kind = kind_of(row);
  if (filter_.kinds && !filter_.kinds->contains(kind)) return false;
  const auto expires_at = row.get<std::optional<SystemTime>>(6);
  if (expires_at && *expires_at <= scope_.now) return false;
  if (row.get<bool>(5) && !scope_.viewer.is_authenticated()) return false;
  return !nostr::is_private(kind) || scope_.viewer.is_authenticated();
}

// Its `p` tags have to be looked at.
bool FilterRead::is_for_parties(const pg::Row& row) const {
  return nostr::is_private(kind_of(row)) && !scope_.viewer.sees_all;
}

// The events of a page, in its order. An event with several links stands in it several times in a row.
Task<bool> FilterRead::take_page(const pg::Result& rows, const TakeEvent& take) {
  EventKeys keys;
  for (const auto& row : rows) {
    if (keys.ids.empty() || keys.ids.back() != row.get<std::string_view>(1)) keys.add(row);
  }
  co_return co_await take_events(keys, take);
}

// Fetches events piece by piece, so that large ones don't come all at once. The server looks at all that it
// is asked for: each piece asks for twice as many as the last one held.
Task<bool> FilterRead::take_events(const EventKeys& keys, const TakeEvent& take) {
  auto count_max = keys.ids.size();
  for (std::size_t first = 0; first < keys.ids.size();) {
    if (scope_.interrupt.has_ended()) co_return false;
    const auto count = std::min(count_max, keys.ids.size() - first);
    auto query = fetch_query(keys, first, count);
    const auto rows =
        co_await scope_.connection.query(query.statement, std::move(query.params), scope_.deadline);
    for (const auto& row : rows) {
      auto live = read_event(row);
      if (passes(*live) && !take(std::move(live))) co_return false;
    }
    const bool is_cut = !rows.empty() && rows[rows.size() - 1].get<std::int64_t>("so_far") >= kPieceBytes;
    first += is_cut ? static_cast<std::size_t>(rows[rows.size() - 1].get<std::int64_t>("place")) : count;
    count_max = 2 * (is_cut ? rows.size() : count);
  }
  co_return true;
}

bool FilterRead::passes(const LiveEvent& live) const {
  return live.seq <= scope_.head && is_visible(live, scope_.viewer, scope_.now) &&
         nostr::matches(filter_, *live.event) && (!plan_.by_links || is_linked(live)) &&
         (!filter_.seq_after || live.seq > *filter_.seq_after);
}

bool FilterRead::is_linked(const LiveEvent& live) const {
  const auto& asked = *filter_.tag('t');
  return std::any_of(live.topics.begin(), live.topics.end(),
                     [&](const auto& topic) { return asked.contains(topic); });
}

}  // namespace todoke::relay
