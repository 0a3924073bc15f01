#include "app/backfilling.hpp"

#include <algorithm>
#include <utility>

#include "app/backfill_sql.hpp"
#include "app/reconciling.hpp"
#include "base/attempt.hpp"
#include "nostr/event_parse.hpp"

namespace todoke::app {
namespace {

// Of a REQ; relays cut it to what they give.
constexpr std::uint32_t kPageEvents = 2'000;
// What reaches a relay later than it was made.
constexpr std::int64_t kMarginSeconds = 86'400;
constexpr std::chrono::seconds kCursorQueryMax(30);

nostr::Filter filter_for(const std::string& topic) {
  nostr::Filter filter;
  filter.tags.push_back({'t', nostr::SortedSet<std::string>({topic})});
  return filter;
}

}  // namespace

Task<void> Backfilling::run(const std::vector<std::string>& topics) {
  for (const auto& topic : topics) {
    topic_ = topic;
    co_await options_.check();
    co_await fill(topic);
    ++topics_done_;
  }
}

Task<void> Backfilling::fill(const std::string& topic) {
  const auto cursor = co_await cursor_of(topic);
  const auto began_at = seconds_of(store_.clock.now()).time_since_epoch().count();
  // Only a todoke relay says where its log stands.
  auto probe = filter_for(topic);
  probe.limit = 0;
  const auto answer = co_await attempt(peer_.stored(probe));
  if (answer && answer->seq) {
    co_await by_seq(topic, cursor, *answer->seq);
    co_return;
  }
  if (!answer && !is_a<UserError>(answer.error())) std::rethrow_exception(answer.error());
  if (compares_) {
    const auto compared = co_await attempt(by_comparing(topic, cursor));
    if (!compared && !is_a<NoNegentropy>(compared.error())) std::rethrow_exception(compared.error());
    compares_ = compared.has_value();
  }
  if (!compares_) co_await by_time(topic, cursor);
  co_await keep(topic, std::nullopt, began_at);
}

Task<void> Backfilling::by_seq(const std::string& topic, Cursor cursor, std::int64_t head) {
  auto at = cursor.seq.value_or(0);
  // Its log is another one now.
  if (at > head) at = 0;
  auto filter = filter_for(topic);
  filter.limit = kPageEvents;
  for (bool more = true; more;) {
    co_await options_.check();
    filter.seq_after = nostr::Seq{at};
    auto page = co_await peer_.stored(filter);
    if (!page.seq) throw UserError("the peer no longer says where its log stands: repeat it");
    more = page.more && *page.seq > at;
    co_await take(std::move(page.events));
    refuse_failures();
    at = *page.seq;
    co_await keep(topic, at, std::nullopt);
  }
}

Task<void> Backfilling::by_comparing(const std::string& topic, Cursor cursor) {
  ReconcilingOptions options;
  options.check = options_.check;
  options.show = [this](const std::string& what, std::uint64_t /*count*/) { show(what); };
  Reconciling reconciling(peer_, store_, intake_, std::move(options));
  auto filter = filter_for(topic);
  if (options_.only_younger && cursor.since) filter.since = *cursor.since - kMarginSeconds;
  co_await reconciling.run(std::move(filter));
  refuse_failures();
}

Task<void> Backfilling::by_time(const std::string& topic, Cursor cursor) {
  auto filter = filter_for(topic);
  filter.limit = kPageEvents;
  if (cursor.since) filter.since = *cursor.since - kMarginSeconds;
  for (bool more = true; more;) {
    co_await options_.check();
    auto page = co_await peer_.stored(filter);
    std::optional<std::int64_t> oldest;
    for (const auto& json : page.events) {
      const auto event = nostr::parse_event(json, {});
      if (event) oldest = std::min(oldest.value_or(event->created_at()), event->created_at());
    }
    // The oldest second may have been cut: it comes again with the next page, and is passed over when that
    // has nothing else.
    const bool is_stuck = oldest && filter.until && *oldest >= *filter.until;
    more = oldest && (!is_stuck || page.events.size() > 1);
    if (more) filter.until = is_stuck ? *filter.until - 1 : *oldest;
    co_await take(std::move(page.events));
    refuse_failures();
  }
}

Task<void> Backfilling::take(std::vector<std::string> events) {
  for (auto& json : events) co_await intake_.store_event(std::move(json));
  co_await intake_.wait_for_outcomes();
  show("filling");
}

void Backfilling::show(const std::string& what) {
  options_.show(topic_, what, intake_.stored());
}

void Backfilling::refuse_failures() const {
  if (intake_.failed() > 0) throw UserError("some events were not stored: repeat it");
}

Task<Backfilling::Cursor> Backfilling::cursor_of(const std::string& topic) {
  const auto rows = co_await connection_.query(sql::kBackfillCursor, {options_.peer, topic},
                                               Deadline::after(kCursorQueryMax));
  Cursor cursor;
  if (!rows.empty()) {
    cursor.seq = rows[0].get<std::optional<std::int64_t>>(0);
    cursor.since = rows[0].get<std::optional<std::int64_t>>(1);
  }
  co_return cursor;
}

Task<void> Backfilling::keep(const std::string& topic, std::optional<std::int64_t> seq,
                             std::optional<std::int64_t> since) {
  pg::Params params(options_.peer, topic, seq, since);
  co_await connection_.query(sql::kKeepBackfillCursor, std::move(params), Deadline::after(kCursorQueryMax));
}

std::vector<std::string> topics_to_backfill(const relay::TopicSet& topics) {
  std::vector<std::string> ids;
  for (const auto& [id, topic] : topics.enabled()) {
    if (topic.allow_backfill) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace todoke::app
