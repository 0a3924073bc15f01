#include "relay/dedupe_counts.hpp"

#include <algorithm>
#include <map>

namespace todoke::relay {

DedupeCounts::DedupeCounts(metrics::Registry& registry, std::size_t ids_max)
    : ids_max_(ids_max),
      dropped_(
          registry.counter("todoke_dedupe_counts_dropped_total",
                           "Duplicates that are missing in event_dedupe.seen_count: too many were waiting "
                           "to be written.")) {}

void DedupeCounts::hit(const nostr::EventId& id, SystemTime at) {
  const std::lock_guard lock(mutex_);
  add(id, 1, at);
}

bool DedupeCounts::is_half_full() {
  const std::lock_guard lock(mutex_);
  return hits_.size() * 2 >= ids_max_;
}

void DedupeCounts::add(const nostr::EventId& id, std::int64_t count, SystemTime at) {
  if (hits_.size() >= ids_max_ && !hits_.contains(id)) {
    dropped_.add(static_cast<std::uint64_t>(count));
    return;
  }
  auto& hits = hits_[id];
  hits.count += count;
  hits.last_seen = std::max(hits.last_seen, at);
}

DedupeCounts::Counted DedupeCounts::take_counted() {
  HashMap<nostr::EventId, Hits> taken;
  {
    const std::lock_guard lock(mutex_);
    taken.swap(hits_);
  }
  // In one order, so that two relays that write the same ids don't wait for each other.
  const std::map<nostr::EventId, Hits> sorted(taken.begin(), taken.end());
  Counted counted;
  for (const auto& [id, hits] : sorted) {
    counted.ids.push_back(id.hex());
    counted.hits.push_back(hits.count);
    counted.last_seen.push_back(hits.last_seen);
  }
  return counted;
}

void DedupeCounts::put_back(const Counted& counted) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < counted.ids.size(); ++i) {
    add(nostr::EventId::from_hex(counted.ids[i]).value(), counted.hits[i], counted.last_seen[i]);
  }
}

}  // namespace todoke::relay
