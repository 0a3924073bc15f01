#include "relay/gossip_store.hpp"

#include <utility>

#include "base/run_on.hpp"
#include "relay/event_rows.hpp"
#include "relay/gossip_store_sql.hpp"

namespace todoke::relay {
namespace {

using outbox::FillEvents;
using outbox::FillSpan;
using outbox::FillView;
using outbox::NegSetPtr;
using outbox::TakenEvent;

// Of a statement; a set of a million ids takes a hundred of them.
constexpr std::chrono::seconds kFillReadMax(30);

nostr::Filter filter_of(const FillSpan& span) {
  nostr::Filter filter;
  filter.tags.push_back({'t', nostr::SortedSet<std::string>({span.topic})});
  filter.since = span.since;
  filter.until = span.until;
  return filter;
}

TakenEvent taken_of(const LiveEvent& live) {
  return {.event = live.event, .topics = live.topics, .non_public = live.non_public, .came_by = {}};
}

}  // namespace

Task<NegSetPtr> GossipStore::ids(FillSpan span, FillView view, std::size_t events_max) {
  co_return co_await run_on(executor_, read_ids(std::move(span), view, events_max));
}

Task<FillEvents> GossipStore::events(std::string topic, std::vector<nostr::EventId> ids) {
  co_return co_await run_on(executor_, read_events(std::move(topic), std::move(ids)));
}

Task<std::vector<TakenEvent>> GossipStore::sent_since(SystemTime since, std::size_t events_max) {
  co_return co_await run_on(executor_, read_sent(since, events_max));
}

Task<NegSetPtr> GossipStore::read_ids(FillSpan span, FillView view, std::size_t events_max) {
  Viewer viewer{.keys = {}, .sees_all = view == FillView::all};
  SetRead read(filter_of(span), std::move(viewer), events_max);
  const auto interrupt = std::make_shared<ReadInterrupt>(executor_);
  while (!read.ended()) co_await reader_.read_piece(read, Deadline::after(kFillReadMax), interrupt);
  if (read.is_too_large()) co_return nullptr;
  co_return std::make_shared<const nostr::NegSet>(read.take());
}

Task<FillEvents> GossipStore::read_events(std::string topic, std::vector<nostr::EventId> ids) {
  auto filter = filter_of({std::move(topic), std::nullopt, std::nullopt});
  filter.limit = static_cast<std::uint32_t>(ids.size());
  filter.ids.emplace(std::move(ids));
  const std::vector<nostr::Filter> filters{std::move(filter)};
  const auto interrupt = std::make_shared<ReadInterrupt>(executor_);
  Viewer anybody;
  const auto read =
      co_await reader_.read(filters, std::move(anybody), Deadline::after(kFillReadMax), interrupt);
  FillEvents found;
  found.more = read.more;
  for (const auto& live : read.events) found.events.push_back(taken_of(*live));
  co_return found;
}

Task<std::vector<TakenEvent>> GossipStore::read_sent(SystemTime since, std::size_t events_max) {
  const auto deadline = Deadline::after(kFillReadMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(since, static_cast<std::int64_t>(events_max));
  const auto rows = co_await lease->query(sql::kSentSince, std::move(params), deadline);
  std::vector<TakenEvent> sent;
  for (const auto& row : rows) sent.push_back(taken_of(*read_event(row)));
  co_return sent;
}

}  // namespace todoke::relay
