// Finds, for an event that has just come, the subscriptions whose filters could match it. Each filter stands
// under the values of its most selective list, so that an event meets few filters that don't match it. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/hash_table.hpp"
#include "nostr/event.hpp"
#include "nostr/filter.hpp"

namespace todoke::relay {

template <class T>
class SubscriptionIndex;

namespace detail {

// The keys under which a filter stands; one of them is a key of every event that matches it. Empty for a
// filter that matches nothing.
std::vector<std::string> index_keys(const nostr::Filter& filter);
// All keys under which a filter that matches the event could stand.
std::vector<std::string> event_keys(const nostr::Event& event);

}  // namespace detail

template <class T>
class SubscriptionIndex {
 public:
  void add(T* subscription, std::span<const nostr::Filter> filters) {
    for (const auto& filter : filters) {
      for (auto& key : detail::index_keys(filter))
        buckets_[std::move(key)].push_back({subscription, &filter});
    }
  }

  void remove(T* subscription, std::span<const nostr::Filter> filters) {
    for (const auto& filter : filters) {
      for (const auto& key : detail::index_keys(filter)) {
        const auto bucket = buckets_.find(key);
        if (bucket == buckets_.end()) continue;
        std::erase_if(bucket->second, [&](const Entry& entry) { return entry.subscription == subscription; });
        if (bucket->second.empty()) buckets_.erase(bucket);
      }
    }
  }

  // Calls `visit` once for each subscription of which a filter matches.
  template <class Visit>
  void each_match(const nostr::Event& event, const Visit& visit) {
    found_.clear();
    for (const auto& key : detail::event_keys(event)) {
      const auto bucket = buckets_.find(key);
      if (bucket == buckets_.end()) continue;
      for (const auto& entry : bucket->second) {
        if (nostr::matches(*entry.filter, event)) found_.push_back(entry.subscription);
      }
    }
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    for (auto* subscription : found_) visit(*subscription);
  }

 private:
  struct Entry {
    T* subscription;
    const nostr::Filter* filter;
  };
  HashMap<std::string, std::vector<Entry>> buckets_;
  std::vector<T*> found_;
};

}  // namespace todoke::relay
