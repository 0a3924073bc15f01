#include "relay/reader.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>

#include "pg/error.hpp"
#include "relay/filter_read.hpp"
#include "relay/link_count.hpp"
#include "relay/query_sql.hpp"
#include "relay/read_plan.hpp"

namespace todoke::relay {
namespace {

using nostr::Filter;

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
      const TakeEvent take = [&](const LiveEventPtr& live) {
        walk.found.push_back(place_by_time(*live->event));
        return true;
      };
      while (walk.found.empty() && walk.more) {
        walk.more = co_await walk.read.next_page(FilterRead::kPageRowsMax,
                                                 std::numeric_limits<std::int64_t>::min(), take);
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
  const ReadScope scope{*lease, viewer, seconds_of(clock_.now()), result.head, deadline, *interrupt};
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
  const ReadScope scope{*lease, viewer, seconds_of(clock_.now()), head, deadline, *interrupt};
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
  const ReadScope scope{*lease, set.viewer_, seconds_of(clock_.now()), kAnySeq, deadline, *interrupt};
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
  const ReadScope scope{*lease, everything, std::chrono::sys_seconds::min(), result.head, deadline, never};
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
  const ReadScope scope{*lease, {}, seconds_of(clock_.now()), kAnySeq, deadline, never};
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
