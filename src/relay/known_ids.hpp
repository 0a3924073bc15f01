// Ids of events that are stored and in effect, the most recent ones: a duplicate is recognised without the
// database and without checking its signature. Thread-safe; two generations, so that remembering and
// forgetting cost a hash lookup each. Holds at most 2 * `generation_max` ids.
#pragma once

#include <cstddef>
#include <mutex>

#include "base/hash_table.hpp"
#include "nostr/ids.hpp"

namespace todoke::relay {

class KnownIds {
 public:
  static constexpr std::size_t kGenerationMax = 65'536;  // two of them take about 12 MB

  explicit KnownIds(std::size_t generation_max = kGenerationMax) : generation_max_(generation_max) {}

  // True: it was not known.
  bool add(const nostr::EventId& id) {
    const std::lock_guard lock(mutex_);
    if (older_.contains(id)) return false;
    const bool fresh = newer_.insert(id).second;
    if (newer_.size() >= generation_max_) {
      older_.swap(newer_);
      newer_.clear();
    }
    return fresh;
  }
  void forget(const nostr::EventId& id) {
    const std::lock_guard lock(mutex_);
    newer_.erase(id);
    older_.erase(id);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    newer_.clear();
    older_.clear();
  }
  [[nodiscard]] bool contains(const nostr::EventId& id) const {
    const std::lock_guard lock(mutex_);
    return newer_.contains(id) || older_.contains(id);
  }

 private:
  const std::size_t generation_max_;
  mutable std::mutex mutex_;
  HashSet<nostr::EventId> newer_;
  HashSet<nostr::EventId> older_;
};

}  // namespace todoke::relay
