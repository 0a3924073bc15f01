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

// What filters take while they are open, with their entries in the index. An estimate.
std::size_t memory_of(std::span<const nostr::Filter> filters);

template <class T>
class SubscriptionIndex {
 public:
  // The filters stay where they are until remove().
  void add(T* subscription, std::span<const nostr::Filter> filters) {
    auto& slots = slots_[subscription];
    for (const auto& filter : filters) {
      for (auto& key : detail::index_keys(filter)) {
        const auto [bucket, fresh] = buckets_.try_emplace(std::move(key));
        if (fresh) bucket->second.key = &bucket->first;
        bucket->second.entries.push_back({subscription, &filter, &slots, slots.size()});
        slots.push_back({&bucket->second, bucket->second.entries.size() - 1});
      }
    }
  }

  // Costs a step for each key of its filters, however many others stand under the same ones.
  void remove(T* subscription) {
    const auto found = slots_.find(subscription);
    if (found == slots_.end()) return;
    for (const auto& slot : found->second) {
      auto& entries = slot.bucket->entries;
      auto& entry = entries[slot.at];
      // The last one takes its place.
      entry = entries.back();
      (*entry.slots)[entry.slot].at = slot.at;
      entries.pop_back();
      if (entries.empty()) buckets_.erase(buckets_.find(*slot.bucket->key));
    }
    slots_.erase(found);
  }

  // Calls `visit` once for each subscription of which a filter matches.
  template <class Visit>
  void each_match(const nostr::Event& event, const Visit& visit) {
    found_.clear();
    for (const auto& key : detail::event_keys(event)) {
      const auto bucket = buckets_.find(key);
      if (bucket == buckets_.end()) continue;
      for (const auto& entry : bucket->second.entries) {
        if (nostr::matches(*entry.filter, event)) found_.push_back(entry.subscription);
      }
    }
    std::sort(found_.begin(), found_.end());
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    for (auto* subscription : found_) visit(*subscription);
  }

 private:
  struct Bucket;
  struct Slot {
    Bucket* bucket;
    std::size_t at;  // in its entries
  };
  using Slots = std::vector<Slot>;
  struct Entry {
    T* subscription;
    const nostr::Filter* filter;
    Slots* slots;      // of the subscription
    std::size_t slot;  // that of this entry
  };
  struct Bucket {
    const std::string* key = nullptr;
    std::vector<Entry> entries;
  };
  // Nodes of these stay where they are.
  HashMap<std::string, Bucket> buckets_;
  HashMap<const T*, Slots> slots_;
  std::vector<T*> found_;
};

}  // namespace todoke::relay
