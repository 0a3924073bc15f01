#include "relay/stored_page.hpp"

#include <iterator>
#include <limits>

namespace todoke::relay {

StoredPage::Place place_by_time(const nostr::Event& event) {
  // ~ turns the order around, as - does, and has no overflow.
  return {~event.created_at(), event.id()};
}

StoredPage::Place StoredPage::place_of(const LiveEvent& live) const {
  switch (order_) {
    case Order::newest_first:
      break;
    case Order::by_seq:
      return {live.seq.value, live.event->id()};
    case Order::as_added:
      return {added_, live.event->id()};
  }
  return place_by_time(*live.event);
}

bool StoredPage::add(LiveEventPtr live) {
  const auto place = place_of(*live);
  if (end_ && place >= *end_) return false;
  if (order_ == Order::as_added) {
    if (!seen_.insert(live->event->id()).second) return true;
    ++added_;
  }
  const auto size = live->event->json().size();
  const auto before = events_.size();
  events_.emplace_hint(events_.end(), place, std::move(live));
  if (events_.size() == before) return true;
  bytes_ += size;
  while (bytes_ > bytes_max_ && events_.size() > 1) drop_last();
  return !end_ || place < *end_;
}

void StoredPage::drop_last() {
  const auto last = std::prev(events_.end());
  bytes_ -= last->second->event->json().size();
  end_ = last->first;
  events_.erase(last);
  more_ = true;
}

void StoredPage::cut_after(nostr::Seq last) {
  more_ = true;
  const Place end{last.value + 1, nostr::EventId({})};
  if (end_ && *end_ <= end) return;
  while (!events_.empty() && events_.rbegin()->first >= end) drop_last();
  end_ = end;
}

std::int64_t StoredPage::oldest() const {
  return end_ ? ~end_->first : std::numeric_limits<std::int64_t>::min();
}

std::vector<LiveEventPtr> StoredPage::events() const {
  std::vector<LiveEventPtr> events;
  events.reserve(events_.size());
  for (const auto& [place, live] : events_) events.push_back(live);
  return events;
}

}  // namespace todoke::relay
