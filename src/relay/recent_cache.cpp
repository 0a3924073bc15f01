#include "relay/recent_cache.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace todoke::relay {
namespace {

// Oldest first: the opposite of the order in which events are sent.
bool is_older(const LiveEventPtr& a, const LiveEventPtr& b) {
  if (a->event->created_at() != b->event->created_at())
    return a->event->created_at() < b->event->created_at();
  return a->event->id() > b->event->id();
}

// More events than this while a window is being filled, and it is not worth it.
constexpr std::size_t kCameMax = 10'000;

}  // namespace

void RecentCache::insert(Window& window, LiveEventPtr live) {
  // Older than all that a cut window holds: it may not be the next older one, so it stays outside.
  if (!window.complete && (window.events.empty() || is_older(live, window.events.front()))) return;
  auto at = window.events.end();
  if (!window.events.empty() && !is_older(window.events.back(), live)) {
    at = std::lower_bound(window.events.begin(), window.events.end(), live, is_older);
    if (at != window.events.end() && (*at)->event->id() == live->event->id()) return;
  }
  const auto size = live->event->json().size();
  window.bytes += size;
  bytes_ += size;
  window.events.insert(at, std::move(live));
}

void RecentCache::trim(Window& window) {
  // In steps: taking one away from the front moves all others.
  if (window.events.size() < limits_.events_max + limits_.events_max / 4) return;
  const auto excess = static_cast<std::ptrdiff_t>(window.events.size() - limits_.events_max);
  std::size_t freed = 0;
  for (auto at = window.events.begin(); at != window.events.begin() + excess; ++at) {
    freed += (*at)->event->json().size();
  }
  window.events.erase(window.events.begin(), window.events.begin() + excess);
  window.complete = false;
  window.events_when_cut = window.events.size();
  window.bytes -= freed;
  bytes_ -= freed;
}

void RecentCache::add(const LiveEventPtr& live) {
  for (const auto& topic : live->topics) {
    const auto found = windows_.find(topic);
    if (found == windows_.end()) continue;
    auto& window = found->second;
    if (!window.filled) {
      window.came.push_back(live);
      if (window.came.size() > kCameMax) drop(found);
      continue;
    }
    insert(window, live);
    trim(window);
  }
  make_room();
}

void RecentCache::remove(const Gone& gone) {
  for (auto& [topic, window] : windows_) {
    if (!window.filled) {
      window.went.insert(gone.id);
      continue;
    }
    const auto at = std::lower_bound(window.events.begin(), window.events.end(), gone,
                                     [](const LiveEventPtr& live, const Gone& sought) {
                                       const auto& event = *live->event;
                                       if (event.created_at() != sought.created_at)
                                         return event.created_at() < sought.created_at;
                                       return event.id() > sought.id;
                                     });
    if (at == window.events.end() || (*at)->event->id() != gone.id) continue;
    const auto size = (*at)->event->json().size();
    window.bytes -= size;
    bytes_ -= size;
    window.events.erase(at);
  }
}

bool RecentCache::find(const nostr::Filter& filter, std::size_t limit, const Viewer& viewer,
                       std::chrono::sys_seconds now, nostr::Seq head, StoredPage& page) {
  const auto* topics = filter.tag('t');
  if (topics == nullptr || topics->values().size() != 1 || filter.seq_after || filter.ids || filter.search) {
    return false;
  }
  const auto found = windows_.find(topics->values().front());
  if (found == windows_.end() || !found->second.filled) return false;
  const auto& window = found->second;
  by_use_.splice(by_use_.begin(), by_use_, window.used);
  auto left = limit;
  for (const auto& entry : window.events | std::views::reverse) {
    const auto& live = *entry;
    if (filter.since && live.event->created_at() < *filter.since) return true;
    if (live.seq > head || !is_visible(live, viewer, now) || !nostr::matches(filter, *live.event)) continue;
    if (left == 0) {
      page.cut();
      return true;
    }
    --left;
    if (!page.add(entry)) return true;
  }
  if (window.complete) return true;
  // Deletions have thinned it out: the next one who asks for the topic fills it anew.
  if (window.events.size() * 2 < window.events_when_cut) drop(found);
  return false;
}

bool RecentCache::wants(const std::string& topic) const {
  return limits_.bytes_max > 0 && !windows_.contains(topic);
}

std::uint64_t RecentCache::begin_fill(const std::string& topic) {
  by_use_.push_front(topic);
  auto& window = windows_[topic];
  window.used = by_use_.begin();
  window.number = ++fills_;
  make_room();
  return fills_;
}

void RecentCache::fill(const std::string& topic, std::uint64_t number, ReadResult newest) {
  const auto found = windows_.find(topic);
  if (found == windows_.end() || found->second.number != number) return;
  auto& window = found->second;
  window.filled = true;
  window.complete = !newest.more;
  std::erase_if(newest.events, [&](const auto& live) { return window.went.contains(live->event->id()); });
  window.events.assign(newest.events.rbegin(), newest.events.rend());
  window.events_when_cut = window.events.size();
  for (const auto& live : window.events) window.bytes += live->event->json().size();
  bytes_ += window.bytes;
  for (auto& live : window.came) {
    if (!window.went.contains(live->event->id())) insert(window, std::move(live));
  }
  window.came = {};
  window.went = {};
  trim(window);
  make_room();
}

void RecentCache::forget(const std::string& topic, std::uint64_t number) {
  const auto found = windows_.find(topic);
  if (found != windows_.end() && found->second.number == number) drop(found);
}

void RecentCache::clear() {
  windows_.clear();
  by_use_.clear();
  bytes_ = 0;
}

void RecentCache::drop(HashMap<std::string, Window>::iterator window) {
  bytes_ -= window->second.bytes;
  by_use_.erase(window->second.used);
  windows_.erase(window);
}

void RecentCache::make_room() {
  while (!by_use_.empty() && (windows_.size() > limits_.topics_max || bytes_ > limits_.bytes_max)) {
    drop(windows_.find(by_use_.back()));
  }
}

}  // namespace todoke::relay
