#include "relay/recent_cache.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

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

std::string name_of_tag(std::string_view value) {
  return fmt::format("t{}", value);
}

std::string name_of_author(const nostr::Pubkey& key) {
  return fmt::format("a{}", key.hex());
}

std::string name_of_kind(nostr::Kind kind) {
  return fmt::format("k{}", kind);
}

const std::string kNameOfAll = "*";

std::string name_of(const nostr::Filter& window) {
  if (!window.tags.empty()) return name_of_tag(window.tags.front().values.values().front());
  if (window.authors) return name_of_author(window.authors->values().front());
  if (window.kinds) return name_of_kind(window.kinds->values().front());
  return kNameOfAll;
}

template <class Set>
bool is_one(const Set& set) {
  return set && set->values().size() == 1;
}

bool has_link(const LiveEvent& live, const nostr::SortedSet<std::string>& topics) {
  return std::any_of(live.topics.begin(), live.topics.end(),
                     [&](const auto& topic) { return topics.contains(topic); });
}

}  // namespace

std::vector<nostr::Filter> RecentCache::windows_of(const nostr::Filter& filter) const {
  std::vector<nostr::Filter> windows;
  if (filter.seq_after || filter.ids || filter.search) return windows;
  if (const auto* values = filter.tag('t'); is_one(values))
    windows.emplace_back().tags.push_back({'t', *values});
  if (policy_ == nostr::TopicPolicy::topics) return windows;
  if (is_one(filter.authors)) windows.emplace_back().authors = filter.authors;
  if (is_one(filter.kinds)) windows.emplace_back().kinds = filter.kinds;
  windows.emplace_back();
  return windows;
}

std::vector<std::string> RecentCache::names_of(const LiveEvent& live) const {
  std::vector<std::string> names;
  if (policy_ == nostr::TopicPolicy::topics) {
    for (const auto& topic : live.topics) names.push_back(name_of_tag(topic));
    return names;
  }
  for (const auto& tag : live.event->tags()) {
    if (tag.name() == "t" && tag.size() > 1) names.push_back(name_of_tag(tag.value()));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  names.push_back(name_of_author(live.event->pubkey()));
  names.push_back(name_of_kind(live.event->kind()));
  names.push_back(kNameOfAll);
  return names;
}

LiveEventPtr RecentCache::hold(LiveEventPtr live) {
  auto& held = held_[live->event->id()];
  if (held.windows++ == 0) {
    bytes_ += live->event->json().size();
    held.live = std::move(live);
  }
  return held.live;
}

void RecentCache::let_go(const LiveEvent& live) {
  const auto held = held_.find(live.event->id());
  if (--held->second.windows > 0) return;
  bytes_ -= held->second.live->event->json().size();
  held_.erase(held);
}

void RecentCache::insert(Window& window, LiveEventPtr live) {
  // Older than all that a cut window holds: it may not be the next older one, so it stays outside.
  if (!window.complete && (window.events.empty() || is_older(live, window.events.front()))) return;
  auto at = window.events.end();
  if (!window.events.empty() && !is_older(window.events.back(), live)) {
    at = std::lower_bound(window.events.begin(), window.events.end(), live, is_older);
    if (at != window.events.end() && (*at)->event->id() == live->event->id()) return;
  }
  window.events.insert(at, hold(std::move(live)));
}

void RecentCache::trim(Window& window) {
  // In steps: taking one away from the front moves all others.
  if (window.events.size() < limits_.events_max + limits_.events_max / 4) return;
  const auto excess = static_cast<std::ptrdiff_t>(window.events.size() - limits_.events_max);
  const auto kept = window.events.begin() + excess;
  for (auto at = window.events.begin(); at != kept; ++at) let_go(**at);
  window.events.erase(window.events.begin(), kept);
  window.complete = false;
  window.events_when_cut = window.events.size();
}

void RecentCache::add(const LiveEventPtr& live) {
  if (windows_.empty()) return;
  for (const auto& name : names_of(*live)) {
    const auto found = windows_.find(name);
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
  for (auto& [name, window] : windows_) {
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
    let_go(**at);
    window.events.erase(at);
  }
}

RecentCache::Windows::iterator RecentCache::find_window(const nostr::Filter& filter) {
  for (const auto& window : windows_of(filter)) {
    const auto found = windows_.find(name_of(window));
    if (found != windows_.end() && found->second.filled) return found;
  }
  return windows_.end();
}

bool RecentCache::find(const nostr::Filter& filter, std::size_t limit, const Viewer& viewer,
                       std::chrono::sys_seconds now, nostr::Seq head, StoredPage& page) {
  if (filter.ids) return find_ids(filter, limit, viewer, now, head, page);
  const auto found = find_window(filter);
  if (found == windows_.end()) return false;
  const auto& window = found->second;
  by_use_.splice(by_use_.begin(), by_use_, window.used);
  auto at = window.events.end();
  if (filter.until) {
    const auto is_later = [](std::int64_t until, const auto& live) {
      return until < live->event->created_at();
    };
    at = std::upper_bound(window.events.begin(), window.events.end(), *filter.until, is_later);
  }
  for (auto left = limit; at != window.events.begin();) {
    const auto& entry = *--at;
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
  // Deletions have thinned it out: the next REQ that asks for it fills it anew.
  if (window.events.size() * 2 < window.events_when_cut) drop(found);
  return false;
}

bool RecentCache::find_ids(const nostr::Filter& filter, std::size_t limit, const Viewer& viewer,
                           std::chrono::sys_seconds now, nostr::Seq head, StoredPage& page) const {
  if (filter.seq_after || filter.search) return false;
  const auto* topics = policy_ == nostr::TopicPolicy::topics ? filter.tag('t') : nullptr;
  std::vector<LiveEventPtr> newest_last;
  for (const auto& id : filter.ids->values()) {
    const auto held = held_.find(id);
    if (held == held_.end()) return false;
    const auto& live = held->second.live;
    if (live->seq > head || !is_visible(*live, viewer, now) || !nostr::matches(filter, *live->event))
      continue;
    if (topics == nullptr || has_link(*live, *topics)) newest_last.push_back(live);
  }
  std::sort(newest_last.begin(), newest_last.end(), is_older);
  for (auto left = limit; !newest_last.empty(); --left, newest_last.pop_back()) {
    if (left == 0) {
      page.cut();
      return true;
    }
    if (!page.add(newest_last.back())) return true;
  }
  return true;
}

bool RecentCache::was_asked_for(const std::string& name) {
  const auto hash = SeededHash()(name);
  return std::exchange(asked_[hash % kAskedMax], hash) == hash;
}

std::optional<nostr::Filter> RecentCache::wants(const nostr::Filter& filter) {
  const auto windows = windows_of(filter);
  if (limits_.bytes_max == 0 || windows.empty()) return std::nullopt;
  const auto name = name_of(windows.front());
  if (windows_.contains(name)) return std::nullopt;
  if (policy_ == nostr::TopicPolicy::open && !was_asked_for(name)) return std::nullopt;
  return windows.front();
}

std::uint64_t RecentCache::begin_fill(const nostr::Filter& window) {
  by_use_.push_front(name_of(window));
  auto& begun = windows_[by_use_.front()];
  begun.used = by_use_.begin();
  begun.number = ++fills_;
  make_room();
  return fills_;
}

void RecentCache::fill(const nostr::Filter& of, std::uint64_t number, ReadResult newest) {
  const auto found = windows_.find(name_of(of));
  if (found == windows_.end() || found->second.number != number) return;
  auto& window = found->second;
  window.filled = true;
  window.complete = !newest.more;
  std::erase_if(newest.events, [&](const auto& live) { return window.went.contains(live->event->id()); });
  window.events.assign(newest.events.rbegin(), newest.events.rend());
  window.events_when_cut = window.events.size();
  for (auto& live : window.events) live = hold(live);
  for (auto& live : window.came) {
    if (!window.went.contains(live->event->id())) insert(window, std::move(live));
  }
  window.came = {};
  window.went = {};
  trim(window);
  make_room();
}

void RecentCache::forget(const nostr::Filter& window, std::uint64_t number) {
  const auto found = windows_.find(name_of(window));
  if (found != windows_.end() && found->second.number == number) drop(found);
}

void RecentCache::forget_up_to(nostr::Seq seq) {
  std::vector<std::string> stale;
  for (const auto& [name, window] : windows_) {
    const bool holds_one = std::any_of(window.events.begin(), window.events.end(),
                                       [&](const auto& live) { return live->seq <= seq; });
    if (holds_one || !window.filled) stale.push_back(name);
  }
  for (const auto& name : stale) drop(windows_.find(name));
}

void RecentCache::forget_topic(const std::string& topic) {
  const auto window = windows_.find(name_of_tag(topic));
  if (window != windows_.end()) drop(window);
}

void RecentCache::clear() {
  windows_.clear();
  by_use_.clear();
  held_.clear();
  bytes_ = 0;
}

void RecentCache::drop(Windows::iterator window) {
  for (const auto& live : window->second.events) let_go(*live);
  by_use_.erase(window->second.used);
  windows_.erase(window);
}

void RecentCache::make_room() {
  while (!by_use_.empty() && (windows_.size() > limits_.windows_max || bytes_ > limits_.bytes_max)) {
    drop(windows_.find(by_use_.back()));
  }
}

}  // namespace todoke::relay
