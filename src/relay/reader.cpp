#include "relay/reader.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/hash_table.hpp"
#include "relay/event_rows.hpp"
#include "relay/query_sql.hpp"
#include "relay/read_plan.hpp"

namespace todoke::relay {
namespace {

using nostr::Filter;

// Rows of a page: what was asked for and a little more, within these.
constexpr std::size_t kPageRowsMin = 32;
constexpr std::size_t kPageRowsMax = 1'000;

using Hexes = std::vector<std::string>;
using Kinds = std::vector<std::int32_t>;

std::optional<Kinds> kinds_of(const Filter& filter) {
  if (!filter.kinds) return std::nullopt;
  return Kinds(filter.kinds->values().begin(), filter.kinds->values().end());
}

template <class Set>
Hexes hexes_of(const Set& set) {
  Hexes hexes;
  for (const auto& value : set.values()) hexes.push_back(value.hex());
  return hexes;
}

std::optional<Hexes> authors_of(const Filter& filter) {
  if (!filter.authors) return std::nullopt;
  return hexes_of(*filter.authors);
}

struct Cursor {
  std::int64_t created_at;
  std::string id;
};

// The statement and parameters of one page.
struct PageQuery {
  pg::Statement statement;
  pg::Params params;
};

PageQuery page_query(const Filter& filter, const Way& way, const Cursor& cursor, std::size_t rows) {
  const auto oldest = filter.since.value_or(std::numeric_limits<std::int64_t>::min());
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
      break;
  }
  throw std::logic_error("this path has no pages");
}

// One filter against one connection.
class FilterRead {
 public:
  FilterRead(pg::Connection& connection, const Filter& filter, ReadPlan plan, Viewer viewer,
             std::chrono::sys_seconds now, nostr::Seq head)
      : connection_(connection),
        filter_(filter),
        plan_(std::move(plan)),
        choice_(plan_.ways.size()),
        cursor_{filter.until.value_or(std::numeric_limits<std::int64_t>::max()), ""},
        viewer_(viewer),
        now_(now),
        head_(head) {}

  // Adds up to `limit` events to `found`, newest first; true: there are more.
  Task<bool> newest(std::size_t limit, std::vector<LiveEventPtr>& found, Deadline deadline) {
    if (is_by_ids()) co_return co_await by_ids(limit, found, deadline);
    const auto first = found.size();
    auto rows = std::clamp(limit + 1, kPageRowsMin, kPageRowsMax);
    for (bool more = true; more; rows = kPageRowsMax) {
      more = co_await next_page(rows, found, deadline);
      if (found.size() - first > limit) {
        found.resize(first + limit);
        co_return true;
      }
    }
    co_return false;
  }

  // Adds the ids of all that pass.
  Task<void> all(HashSet<nostr::EventId>& ids, Deadline deadline) {
    std::vector<LiveEventPtr> found;
    if (is_by_ids()) {
      co_await by_ids(filter_.ids->values().size(), found, deadline);
      for (const auto& live : found) ids.insert(live->event->id());
      co_return;
    }
    for (bool more = true; more;) {
      more = co_await next_page(kPageRowsMax, found, deadline);
      for (const auto& live : found) ids.insert(live->event->id());
      found.clear();
    }
  }

  // Those of `ids` that pass, in their order.
  Task<bool> ranked(const Hexes& ids, std::size_t limit, std::vector<LiveEventPtr>& found,
                    Deadline deadline) {
    const auto rows = co_await connection_.query(sql::kEventsById, {ids}, deadline);
    HashMap<std::string, LiveEventPtr> events;
    for (const auto& row : rows) events.emplace(row.get<std::string>(0), read_event(row));
    const auto first = found.size();
    for (const auto& id : ids) {
      if (const auto event = events.find(id); event != events.end()) take(event->second, found);
    }
    const bool more = found.size() - first > limit;
    if (more) found.resize(first + limit);
    co_return more;
  }

  // The same in the order of the log, after `after`.
  Task<bool> by_seq(nostr::Seq after, std::size_t limit, std::vector<LiveEventPtr>& found,
                    Deadline deadline) {
    const auto first = found.size();
    for (;;) {
      pg::Params params(after.value, head_.value, static_cast<std::int64_t>(kPageRowsMax));
      if (plan_.by_links) params.add(filter_.tag('t')->values());
      const auto statement = plan_.by_links ? sql::kKeysByTopicSeq : sql::kKeysBySeq;
      const auto keys = co_await connection_.query(statement, std::move(params), deadline);
      co_await take_page(keys, found, deadline);
      if (found.size() - first > limit) {
        found.resize(first + limit);
        co_return true;
      }
      if (keys.size() < kPageRowsMax) co_return false;
      after = {keys[keys.size() - 1].get<std::int64_t>(0)};
    }
  }

 private:
  Task<bool> by_ids(std::size_t limit, std::vector<LiveEventPtr>& found, Deadline deadline) {
    const auto ids = hexes_of(*filter_.ids);
    const auto rows = co_await connection_.query(sql::kEventsById, {ids}, deadline);
    std::vector<LiveEventPtr> matched;
    for (const auto& row : rows) take(read_event(row), matched);
    sort_newest_first(matched);
    const bool more = matched.size() > limit;
    if (more) matched.resize(limit);
    found.insert(found.end(), matched.begin(), matched.end());
    co_return more;
  }

  [[nodiscard]] bool is_by_ids() const { return plan_.ways.front().path == Path::ids; }

  // Adds what passes of the next page of candidates; false: it was the last.
  Task<bool> next_page(std::size_t rows, std::vector<LiveEventPtr>& found, Deadline deadline) {
    auto query = page_query(filter_, plan_.ways[choice_.next()], cursor_, rows);
    const auto keys = co_await connection_.query(query.statement, std::move(query.params), deadline);
    co_await take_page(keys, found, deadline);
    if (keys.size() < rows) co_return false;
    // From its first row: where the cursor stood, nothing may have been for years.
    const auto newest = keys[0].get<std::int64_t>(0);
    const auto last = keys[keys.size() - 1];
    cursor_ = {last.get<std::int64_t>(0), last.get<std::string>(1)};
    choice_.advanced(static_cast<double>(newest) - static_cast<double>(cursor_.created_at), rows);
    co_return true;
  }

  // Fetches the events of a page and adds those that pass, in the order of the page.
  Task<void> take_page(const pg::Result& keys, std::vector<LiveEventPtr>& found, Deadline deadline) {
    Hexes ids;
    std::vector<SystemTime> times;
    Hexes lifetimes;
    for (const auto& key : keys) {
      auto id = key.get<std::string>(1);
      if (!seen_.insert(id).second) continue;
      ids.push_back(std::move(id));
      times.push_back(key.get<SystemTime>(2));
      lifetimes.push_back(key.get<std::string>(3));
    }
    if (ids.empty()) co_return;
    pg::Params params(ids, times, lifetimes);
    const auto rows = co_await connection_.query(sql::kEventsOf, std::move(params), deadline);
    HashMap<std::string_view, LiveEventPtr> events;
    for (const auto& row : rows) events.emplace(row.get<std::string_view>(0), read_event(row));
    for (const auto& id : ids) {
      if (const auto event = events.find(id); event != events.end()) take(event->second, found);
    }
  }

  void take(LiveEventPtr live, std::vector<LiveEventPtr>& found) const {
    if (live->seq > head_ || !is_visible(*live, viewer_, now_) || !nostr::matches(filter_, *live->event))
      return;
    if (plan_.by_links && !is_linked(*live)) return;
    if (filter_.seq_after && live->seq <= *filter_.seq_after) return;
    found.push_back(std::move(live));
  }

  [[nodiscard]] bool is_linked(const LiveEvent& live) const {
    const auto& asked = *filter_.tag('t');
    return std::any_of(live.topics.begin(), live.topics.end(),
                       [&](const auto& topic) { return asked.contains(topic); });
  }

  pg::Connection& connection_;
  const Filter& filter_;
  ReadPlan plan_;
  WayChoice choice_;
  Cursor cursor_;
  Viewer viewer_;
  std::chrono::sys_seconds now_;
  nostr::Seq head_;
  HashSet<std::string> seen_;  // an event can have several links
};

std::chrono::sys_seconds seconds_of(SystemTime time) {
  return std::chrono::time_point_cast<std::chrono::seconds>(time);
}

Task<nostr::Seq> head_of(pg::Connection& connection, Deadline deadline) {
  const auto row = co_await connection.query(sql::kHead, {}, deadline);
  co_return nostr::Seq{row.one().get<std::int64_t>(0)};
}

void keep_each_once(std::vector<LiveEventPtr>& events) {
  const auto same = [](const auto& a, const auto& b) { return a->event->id() == b->event->id(); };
  events.erase(std::unique(events.begin(), events.end(), same), events.end());
}

// The same where they are not sorted.
void keep_first_of_each(std::vector<LiveEventPtr>& events) {
  HashSet<nostr::EventId> seen;
  std::erase_if(events, [&](const auto& live) { return !seen.insert(live->event->id()).second; });
}

void sort_by_seq(std::vector<LiveEventPtr>& events) {
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a->seq < b->seq; });
}

}  // namespace

bool is_visible(const LiveEvent& live, const Viewer& viewer, std::chrono::sys_seconds now) {
  return (!live.non_public || viewer.authenticated) && !is_over(live, now);
}

void sort_newest_first(std::vector<LiveEventPtr>& events) {
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
    if (a->event->created_at() != b->event->created_at())
      return a->event->created_at() > b->event->created_at();
    return a->event->id() < b->event->id();
  });
}

bool cut_at_bytes(std::vector<LiveEventPtr>& events, std::size_t bytes_max) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    bytes += events[i]->event->json().size();
    if (bytes <= bytes_max || i == 0) continue;
    events.resize(i);
    return true;
  }
  return false;
}

std::size_t Reader::limit_of(const Filter& filter) const {
  return std::min<std::size_t>(filter.limit.value_or(static_cast<std::uint32_t>(limits_.limit_default)),
                               limits_.limit_max);
}

// What the index finds. Asked before a connection is taken: whoever waits for a second one while holding a
// first can wait for ever.
Task<std::vector<std::string>> Reader::find_ranked(const Filter& filter, Deadline deadline) {
  outbox::SearchRequest request;
  request.text = *filter.search;
  if (const auto* topics = filter.tag('t')) request.topics = topics->values();
  request.kinds = kinds_of(filter);
  request.authors = authors_of(filter);
  request.since = filter.since;
  request.until = filter.until;
  request.limit = limit_of(filter) + 1;
  co_return co_await search_->find(std::move(request), deadline);
}

Task<ReadResult> Reader::read(const std::vector<Filter>& filters, Viewer viewer, Deadline deadline) {
  std::vector<Hexes> ranked(filters.size());
  for (std::size_t i = 0; i < filters.size(); ++i) {
    if (filters[i].search) ranked[i] = co_await find_ranked(filters[i], deadline);
  }
  const auto lease = co_await pool_.acquire(deadline);
  ReadResult result;
  result.head = co_await head_of(*lease, deadline);
  const auto now = seconds_of(clock_.now());
  const bool by_seq = filters.front().seq_after.has_value();
  // By seq, a filter that was cut hides what comes after its last event.
  auto complete_until = result.head;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const auto& filter = filters[i];
    auto plan = plan_read(filter, policy_);
    const auto limit = limit_of(filter);
    if (plan.ways.empty()) continue;
    FilterRead read(*lease, filter, std::move(plan), viewer, now, result.head);
    if (filter.search) {
      const bool more = co_await read.ranked(ranked[i], limit, result.events, deadline);
      result.more = result.more || more;
    } else if (by_seq) {
      const bool more = co_await read.by_seq(*filter.seq_after, limit, result.events, deadline);
      if (more)
        complete_until = std::min(complete_until, limit == 0 ? *filter.seq_after : result.events.back()->seq);
      result.more = result.more || more;
    } else {
      const bool more = co_await read.newest(limit, result.events, deadline);
      result.more = result.more || more;
    }
  }
  const bool is_ranked = std::any_of(filters.begin(), filters.end(),
                                     [](const Filter& filter) { return filter.search.has_value(); });
  if (is_ranked) {
    keep_first_of_each(result.events);
  } else if (by_seq) {
    sort_by_seq(result.events);
    keep_each_once(result.events);
  } else {
    sort_newest_first(result.events);
    keep_each_once(result.events);
  }
  if (by_seq) {
    std::erase_if(result.events, [&](const auto& live) { return live->seq > complete_until; });
  }
  if (cut_at_bytes(result.events, limits_.bytes_max)) result.more = true;
  result.cursor = result.head;
  if (by_seq && result.more) {
    result.cursor = result.events.empty() ? *filters.front().seq_after : result.events.back()->seq;
  }
  co_return result;
}

Task<std::uint64_t> Reader::count(const std::vector<Filter>& filters, Viewer viewer, Deadline deadline) {
  const auto lease = co_await pool_.acquire(deadline);
  const auto& first = filters.front();
  if (filters.size() == 1) {
    const auto plan = plan_read(first, policy_);
    if (plan.ways.empty()) co_return 0;
    if (plan.links_decide && !first.seq_after) {
      pg::Params params(first.since.value_or(std::numeric_limits<std::int64_t>::min()),
                        first.until.value_or(std::numeric_limits<std::int64_t>::max()), viewer.authenticated,
                        plan.ways.front().values);
      params.add(kinds_of(first)).add(authors_of(first));
      const auto rows = co_await lease->query(sql::kCountByTopic, std::move(params), deadline);
      co_return static_cast<std::uint64_t>(rows.one().get<std::int64_t>(0));
    }
  }
  const auto head = co_await head_of(*lease, deadline);
  const auto now = seconds_of(clock_.now());
  HashSet<nostr::EventId> ids;
  for (const auto& filter : filters) {
    auto plan = plan_read(filter, policy_);
    if (plan.ways.empty()) continue;
    FilterRead read(*lease, filter, std::move(plan), viewer, now, head);
    co_await read.all(ids, deadline);
  }
  co_return ids.size();
}

Task<ReadResult> Reader::recent(const std::string& topic, std::size_t events_max, Deadline deadline) {
  Filter filter;
  filter.tags.push_back({'t', nostr::SortedSet<std::string>({topic})});
  const auto lease = co_await pool_.acquire(deadline);
  ReadResult result;
  result.head = co_await head_of(*lease, deadline);
  ReadPlan plan;
  plan.ways.push_back({Path::topic, 't', {topic}});
  const Viewer everything{true};
  FilterRead read(*lease, filter, std::move(plan), everything, std::chrono::sys_seconds::min(), result.head);
  result.more = co_await read.newest(events_max, result.events, deadline);
  co_return result;
}

Task<void> ensure_open_indexes(pg::Pool& pool, Deadline deadline) {
  const auto lease = co_await pool.acquire(deadline);
  const auto there = co_await lease->query(sql::kHasOpenIndexes, {}, deadline);
  if (there.one().get<bool>(0)) co_return;
  co_await lease->execute_script(
      "BEGIN;"
      "SELECT pg_advisory_xact_lock(128021775215462);"
      "CREATE INDEX IF NOT EXISTS events_open_author ON cn_relay.events (pubkey, created_at DESC, event_id);"
      "CREATE INDEX IF NOT EXISTS events_open_author_kind ON cn_relay.events (pubkey, kind, created_at DESC, "
      "event_id);"
      "CREATE INDEX IF NOT EXISTS events_open_kind ON cn_relay.events (kind, created_at DESC, event_id);"
      "CREATE INDEX IF NOT EXISTS events_open_time ON cn_relay.events (created_at DESC, event_id);"
      "CREATE INDEX IF NOT EXISTS events_open_seq ON cn_relay.events (ingested_seq);"
      "COMMIT;",
      deadline);
}

}  // namespace todoke::relay
