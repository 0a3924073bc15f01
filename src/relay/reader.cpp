#include "relay/reader.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>

#include "nostr/kinds.hpp"
#include "pg/error.hpp"
#include "relay/event_rows.hpp"
#include "relay/link_count.hpp"
#include "relay/query_sql.hpp"
#include "relay/read_plan.hpp"

namespace todoke::relay {
namespace {

using nostr::Filter;

// Rows of a page: what was asked for and a little more, within these.
constexpr std::size_t kPageRowsMin = 32;
constexpr std::size_t kPageRowsMax = 1'000;
// Of a set, where the rows of the index tell all that is asked: 30 to 60 ms.
constexpr std::size_t kSetRowsMax = 10'000;
// Text of the events that are fetched at once. A page of small events comes in one piece.
constexpr std::int64_t kPieceBytes = 1024 * 1024;

using Hexes = std::vector<std::string>;
using Kinds = std::vector<std::int32_t>;

std::optional<Kinds> kinds_of(const Filter& filter) {
  if (!filter.kinds) return std::nullopt;
  return Kinds(filter.kinds->values().begin(), filter.kinds->values().end());
}

template <class T>
Hexes hexes_of(const std::vector<T>& list) {
  Hexes hexes;
  for (const auto& value : list) hexes.push_back(value.hex());
  return hexes;
}

template <class T>
Hexes hexes_of(const nostr::SortedSet<T>& set) {
  return hexes_of(set.values());
}

std::optional<Hexes> authors_of(const Filter& filter) {
  if (!filter.authors) return std::nullopt;
  return hexes_of(*filter.authors);
}

struct Cursor {
  std::int64_t created_at;
  std::string id;
};

Cursor cursor_of(const pg::Row& row) {
  return {row.get<std::int64_t>(0), row.get<std::string>(1)};
}

struct PageQuery {
  pg::Statement statement;
  pg::Params params;
};

PageQuery page_query(const Filter& filter, const Way& way, const Cursor& cursor, std::int64_t oldest,
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

// What all filters of a REQ or COUNT share.
struct Scope {
  pg::Connection& connection;
  Viewer viewer;
  std::chrono::sys_seconds now;
  nostr::Seq head;
  Deadline deadline;
  const ReadInterrupt& interrupt;
};

// Names the connection that works for a read, as long as this lives.
class InUse {
 public:
  InUse(ReadInterrupt& read, pg::Connection& connection) : read_(read) { read_.use(&connection); }
  ~InUse() { read_.use(nullptr); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  ReadInterrupt& read_;
};

// Gets the events that pass, in the order of the read. False: that is enough.
using Take = std::function<bool(LiveEventPtr)>;

// The events of a page, by what finds them: `times` and `lifetimes` name their partitions and may be missing.
struct Keys {
  Hexes ids;
  std::vector<SystemTime> times;
  Hexes lifetimes;

  void add(const pg::Row& row) {
    ids.push_back(row.get<std::string>(1));
    times.push_back(row.get<SystemTime>(2));
    lifetimes.push_back(row.get<std::string>(3));
  }

  [[nodiscard]] PageQuery query(std::size_t first, std::size_t count) const {
    const auto part = [&](const auto& list) { return std::span(list).subspan(first, count); };
    pg::Params params(part(ids), kPieceBytes);
    if (times.empty()) return {sql::kEventsById, std::move(params)};
    params.add(part(times)).add(part(lifetimes));
    return {sql::kEventsOf, std::move(params)};
  }
};

// One filter against one connection.
class FilterRead {
 public:
  FilterRead(const Scope& scope, const Filter& filter, ReadPlan plan)
      : scope_(scope),
        filter_(filter),
        plan_(std::move(plan)),
        choice_(plan_.ways.size()),
        cursor_{filter.until.value_or(std::numeric_limits<std::int64_t>::max()), ""} {}

  // Fills the page with the newest ones, up to `limit` of them.
  Task<void> newest(std::size_t limit, StoredPage& page) {
    const auto take = into(page, limit);
    auto rows = std::clamp(limit + 1, kPageRowsMin, kPageRowsMax);
    for (bool more = true; more; rows = kPageRowsMax) more = co_await next_page(rows, page.oldest(), take);
  }

  // With those of `ids` that pass, in their order.
  Task<void> ranked(Hexes ids, std::size_t limit, StoredPage& page) {
    const Keys keys{std::move(ids), {}, {}};
    const auto take = into(page, limit);
    co_await take_events(keys, take);
  }

  // With those after `after` in the order of the log.
  Task<void> by_seq(nostr::Seq after, std::size_t limit, StoredPage& page) {
    auto left = limit;
    auto last = after;
    const Take take = [&](LiveEventPtr live) {
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

  // Gives what passes of the next page of candidates, newest first and none older than `oldest`. False: it
  // was the last, or enough.
  Task<bool> next_page(std::size_t rows, std::int64_t oldest, const Take& take) {
    if (scope_.interrupt.has_ended()) co_return false;
    auto query = page_query(filter_, plan_.ways[choice_.next()], cursor_, oldest, rows);
    const auto keys =
        co_await scope_.connection.query(query.statement, std::move(query.params), scope_.deadline);
    const bool goes_on = co_await take_page(keys, take);
    if (!goes_on || keys.size() < rows) co_return false;
    pass(keys);
    co_return true;
  }

  // The same for a set, of which only times and ids are wanted: where the rows of the index say all that the
  // filter and the viewer ask, no event is fetched but the private ones.
  Task<bool> next_set_page(std::vector<nostr::NegItem>& found) {
    const Take take = [&](const LiveEventPtr& live) {
      found.push_back({live->event->created_at(), live->event->id()});
      return true;
    };
    constexpr auto kOldest = std::numeric_limits<std::int64_t>::min();
    if (!rows_decide()) co_return co_await next_page(kPageRowsMax, kOldest, take);
    auto query = page_query(filter_, plan_.ways[choice_.next()], cursor_, kOldest, kSetRowsMax);
    const auto rows =
        co_await scope_.connection.query(query.statement, std::move(query.params), scope_.deadline);
    Keys to_fetch;
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

  // A read that ends here and goes on later.
  void resume(WayChoice choice, Cursor cursor) {
    choice_ = choice;
    cursor_ = std::move(cursor);
  }
  [[nodiscard]] const WayChoice& choice() const { return choice_; }
  [[nodiscard]] const Cursor& cursor() const { return cursor_; }

 private:
  // The next page begins after this one.
  void pass(const pg::Result& page) {
    // From its first row: where the cursor stood, nothing may have been for years.
    const auto newest = page[0].get<std::int64_t>(0);
    cursor_ = cursor_of(page[page.size() - 1]);
    choice_.advanced(static_cast<double>(newest) - static_cast<double>(cursor_.created_at), page.size());
  }

  // Whether the columns of a page by links or of events answer the whole filter.
  [[nodiscard]] bool rows_decide() const {
    return plan_.by_links ? plan_.links_decide : filter_.tags.empty() && !filter_.ids;
  }

  static nostr::Kind kind_of(const pg::Row& row) {
    return static_cast<nostr::Kind>(row.get<std::int32_t>(4));
  }

  [[nodiscard]] bool passes_as_row(const pg::Row& row) const {
    const auto kind = kind_of(row);
    if (filter_.kinds && !filter_.kinds->contains(kind)) return false;
    const auto expires_at = row.get<std::optional<SystemTime>>(6);
    if (expires_at && *expires_at <= scope_.now) return false;
    if (row.get<bool>(5) && !scope_.viewer.is_authenticated()) return false;
    return !nostr::is_private(kind) || scope_.viewer.is_authenticated();
  }

  // Its `p` tags have to be looked at.
  [[nodiscard]] bool is_for_parties(const pg::Row& row) const {
    return nostr::is_private(kind_of(row)) && !scope_.viewer.sees_all;
  }

  static Take into(StoredPage& page, std::size_t limit) {
    return [&page, left = limit](LiveEventPtr live) mutable {
      if (left == 0) {
        page.cut();
        return false;
      }
      --left;
      return page.add(std::move(live));
    };
  }

  // The events of a page, in its order. An event with several links stands in it several times in a row.
  Task<bool> take_page(const pg::Result& rows, const Take& take) {
    Keys keys;
    for (const auto& row : rows) {
      if (keys.ids.empty() || keys.ids.back() != row.get<std::string_view>(1)) keys.add(row);
    }
    co_return co_await take_events(keys, take);
  }

  // Fetches events piece by piece, so that large ones don't come all at once. The server looks at all that it
  // is asked for: each piece asks for twice as many as the last one held.
  Task<bool> take_events(const Keys& keys, const Take& take) {
    auto count_max = keys.ids.size();
    for (std::size_t first = 0; first < keys.ids.size();) {
      if (scope_.interrupt.has_ended()) co_return false;
      const auto count = std::min(count_max, keys.ids.size() - first);
      auto query = keys.query(first, count);
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

  [[nodiscard]] bool passes(const LiveEvent& live) const {
    return live.seq <= scope_.head && is_visible(live, scope_.viewer, scope_.now) &&
           nostr::matches(filter_, *live.event) && (!plan_.by_links || is_linked(live)) &&
           (!filter_.seq_after || live.seq > *filter_.seq_after);
  }

  [[nodiscard]] bool is_linked(const LiveEvent& live) const {
    const auto& asked = *filter_.tag('t');
    return std::any_of(live.topics.begin(), live.topics.end(),
                       [&](const auto& topic) { return asked.contains(topic); });
  }

  const Scope& scope_;
  const Filter& filter_;
  ReadPlan plan_;
  WayChoice choice_;
  Cursor cursor_;
};

// A filter of a COUNT: the places of the matches that were read and not counted yet.
struct Walk {
  FilterRead read;
  std::deque<StoredPage::Place> found = {};
  bool more = true;
};

Task<nostr::Seq> head_of(pg::Connection& connection, Deadline deadline) {
  const auto row = co_await connection.query(sql::kHead, {}, deadline);
  co_return nostr::Seq{row.one().get<std::int64_t>(0)};
}

StoredPage::Order order_of(const std::vector<Filter>& filters) {
  const bool is_ranked = std::any_of(filters.begin(), filters.end(),
                                     [](const Filter& filter) { return filter.search.has_value(); });
  if (is_ranked) return StoredPage::Order::as_added;
  return filters.front().seq_after ? StoredPage::Order::by_seq : StoredPage::Order::newest_first;
}

// All filters give their matches in the same order, so that each event can be counted once while no more than
// a page of each is in memory.
Task<std::uint64_t> count_together(std::deque<Walk>& walks) {
  for (std::uint64_t counted = 0;; ++counted) {
    const StoredPage::Place* next = nullptr;
    for (auto& walk : walks) {
      const Take take = [&](const LiveEventPtr& live) {
        walk.found.push_back(place_by_time(*live->event));
        return true;
      };
      while (walk.found.empty() && walk.more) {
        walk.more =
            co_await walk.read.next_page(kPageRowsMax, std::numeric_limits<std::int64_t>::min(), take);
      }
      if (!walk.found.empty() && (next == nullptr || walk.found.front() < *next)) next = &walk.found.front();
    }
    if (next == nullptr) co_return counted;
    const auto place = *next;
    for (auto& walk : walks) {
      if (!walk.found.empty() && walk.found.front() == place) walk.found.pop_front();
    }
  }
}

}  // namespace

void ReadInterrupt::end(const std::shared_ptr<ReadInterrupt>& read) {
  if (!read || read->ended_.exchange(true)) return;
  asio::post(read->executor_, [read] {
    if (read->connection_ != nullptr) read->connection_->interrupt();
  });
}

void ReadInterrupt::use(pg::Connection* connection) {
  if (connection != nullptr && ended_) throw pg::DeadlineExceeded("nobody waits for the read any more");
  connection_ = connection;
}

std::size_t Reader::limit_of(const Filter& filter) const {
  const auto limits = this->limits();
  return std::min<std::size_t>(filter.limit.value_or(static_cast<std::uint32_t>(limits.limit_default)),
                               limits.limit_max);
}

// The events that the index finds. Asks before it takes a connection: a read that waits for a second one
// while it holds a first can wait for ever.
Task<outbox::SearchResult> Reader::find_ranked(const Filter& filter, Deadline deadline,
                                               ReadInterruptPtr interrupt) {
  const auto plan = plan_read(filter, policy_);
  if (plan.ways.empty()) co_return outbox::SearchResult{};
  outbox::SearchRequest request;
  request.text = *filter.search;
  if (filter.ids) request.ids = hexes_of(*filter.ids);
  for (const auto& tag : filter.tags) {
    if (tag.letter == 't' && plan.by_links) {
      request.topics = tag.values.values();
    } else {
      request.tags.push_back({tag.letter, tag.values.values()});
    }
  }
  request.kinds = kinds_of(filter);
  request.authors = authors_of(filter);
  request.since = filter.since;
  request.until = filter.until;
  request.limit = limit_of(filter) + 1;
  request.on_connection = [interrupt](pg::Connection* connection) { interrupt->use(connection); };
  co_return co_await search_->find(std::move(request), deadline);
}

Task<ReadResult> Reader::read(const std::vector<Filter>& filters, Viewer viewer, Deadline deadline,
                              ReadInterruptPtr interrupt) {
  std::vector<outbox::SearchResult> ranked(filters.size());
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const bool is_ranked = filters[i].search && limit_of(filters[i]) > 0 && !interrupt->has_ended();
    if (is_ranked) ranked[i] = co_await find_ranked(filters[i], deadline, interrupt);
  }
  const auto lease = co_await pool_.acquire(deadline);
  const InUse in_use(*interrupt, *lease);
  ReadResult result;
  result.head = co_await head_of(*lease, deadline);
  const Scope scope{*lease, viewer, seconds_of(clock_.now()), result.head, deadline, *interrupt};
  const auto after = filters.front().seq_after;
  StoredPage page(order_of(filters), limits().bytes_max);
  for (std::size_t i = 0; i < filters.size() && !interrupt->has_ended(); ++i) {
    const auto& filter = filters[i];
    const auto limit = limit_of(filter);
    auto plan = plan_read(filter, policy_);
    if (limit == 0) page.cut();
    if (limit == 0 || plan.ways.empty()) continue;
    FilterRead read(scope, filter, std::move(plan));
    if (filter.search) {
      if (ranked[i].more) page.cut();
      co_await read.ranked(std::move(ranked[i].ids), limit, page);
    } else if (after) {
      co_await read.by_seq(*after, limit, page);
    } else {
      co_await read.newest(limit, page);
    }
  }
  result.events = page.events();
  result.more = page.more();
  result.cursor = result.head;
  if (after && result.more) result.cursor = result.events.empty() ? *after : result.events.back()->seq;
  co_return result;
}

Task<std::uint64_t> Reader::count(const std::vector<Filter>& filters, Viewer viewer, Deadline deadline,
                                  ReadInterruptPtr interrupt) {
  const auto lease = co_await pool_.acquire(deadline);
  const InUse in_use(*interrupt, *lease);
  const auto& first = filters.front();
  if (filters.size() == 1) {
    const auto plan = plan_read(first, policy_);
    if (plan.ways.empty()) co_return 0;
    if (plan.links_decide && !first.seq_after) {
      pg::Params params(first.since.value_or(std::numeric_limits<std::int64_t>::min()),
                        first.until.value_or(std::numeric_limits<std::int64_t>::max()),
                        viewer.is_authenticated(), plan.ways.front().values, hexes_of(viewer.keys),
                        private_kinds());
      params.add(kinds_of(first)).add(authors_of(first));
      const auto rows = co_await lease->query(sql::kCountByTopic, std::move(params), deadline);
      co_return static_cast<std::uint64_t>(rows.one().get<std::int64_t>(0));
    }
  }
  if (auto params = link_count(filters, policy_, viewer)) {
    const auto rows = co_await lease->query(sql::kCountByLinks, std::move(*params), deadline);
    co_return static_cast<std::uint64_t>(rows.one().get<std::int64_t>(0));
  }
  const auto head = co_await head_of(*lease, deadline);
  const Scope scope{*lease, viewer, seconds_of(clock_.now()), head, deadline, *interrupt};
  std::deque<Walk> walks;
  for (const auto& filter : filters) {
    auto plan = plan_read(filter, policy_);
    if (!plan.ways.empty()) walks.push_back({FilterRead(scope, filter, std::move(plan))});
  }
  co_return co_await count_together(walks);
}

Task<void> Reader::read_piece(SetRead& set, Deadline deadline, ReadInterruptPtr interrupt) {
  auto plan = plan_read(set.filter_, policy_);
  set.ended_ = plan.ways.empty();
  if (set.ended_) co_return;
  const auto lease = co_await pool_.acquire(deadline);
  const InUse in_use(*interrupt, *lease);
  constexpr nostr::Seq kAnySeq{std::numeric_limits<std::int64_t>::max()};
  const Scope scope{*lease, set.viewer_, seconds_of(clock_.now()), kAnySeq, deadline, *interrupt};
  FilterRead read(scope, set.filter_, std::move(plan));
  if (set.place_) read.resume(set.place_->choice, {set.place_->created_at, set.place_->id});
  std::vector<nostr::NegItem> found;
  const bool more = co_await read.next_set_page(found);
  set.place_ = SetRead::Place{read.choice(), read.cursor().created_at, read.cursor().id};
  // Those that had to be fetched come last; a limit asks for the newest.
  const auto is_newer = [](const nostr::NegItem& a, const nostr::NegItem& b) {
    return a.created_at != b.created_at ? a.created_at > b.created_at : a.id < b.id;
  };
  if (!std::is_sorted(found.begin(), found.end(), is_newer)) std::sort(found.begin(), found.end(), is_newer);
  const auto most = set.filter_.limit.value_or(std::numeric_limits<std::uint32_t>::max());
  const auto taken = std::min<std::size_t>(found.size(), most - set.items_.size());
  set.items_.insert(set.items_.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(taken));
  set.ended_ = !more || set.items_.size() >= most || set.is_too_large();
}

Task<ReadResult> Reader::recent(const Filter& filter, std::size_t events_max, std::size_t bytes_max,
                                Deadline deadline) {
  const auto lease = co_await pool_.acquire(deadline);
  ReadResult result;
  result.head = co_await head_of(*lease, deadline);
  const Viewer everything{.sees_all = true};
  const ReadInterrupt never{Executor()};
  const Scope scope{*lease, everything, std::chrono::sys_seconds::min(), result.head, deadline, never};
  StoredPage page(StoredPage::Order::newest_first, bytes_max);
  FilterRead read(scope, filter, plan_read(filter, policy_));
  co_await read.newest(events_max, page);
  result.events = page.events();
  result.more = page.more();
  co_return result;
}

Task<std::vector<LiveEventPtr>> Reader::public_events(const std::vector<std::string>& ids,
                                                      Deadline deadline) {
  std::vector<nostr::EventId> wanted;
  for (const auto& hex : ids) {
    if (const auto id = nostr::EventId::from_hex(hex)) wanted.push_back(*id);
  }
  Filter filter;
  filter.ids.emplace(std::move(wanted));
  if (filter.ids->empty()) co_return std::vector<LiveEventPtr>();
  const auto lease = co_await pool_.acquire(deadline);
  constexpr nostr::Seq kAnySeq{std::numeric_limits<std::int64_t>::max()};
  const ReadInterrupt never{Executor()};
  const Scope scope{*lease, {}, seconds_of(clock_.now()), kAnySeq, deadline, never};
  StoredPage page(StoredPage::Order::as_added, std::numeric_limits<std::size_t>::max());
  FilterRead read(scope, filter, plan_read(filter, policy_));
  co_await read.ranked(hexes_of(*filter.ids), filter.ids->values().size(), page);
  co_return page.events();
}

Task<void> ensure_open_indexes(pg::Pool& pool, Deadline deadline) {
  const auto lease = co_await pool.acquire(deadline);
  const auto there = co_await lease->query(sql::kHasOpenIndexes, {}, deadline);
  if (there.one().get<bool>(0)) co_return;
  co_await lease->query(sql::kEnsureOpenIndexes, {}, deadline);
}

}  // namespace todoke::relay
