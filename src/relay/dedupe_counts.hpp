// How often events came again, counted in memory and written to event_dedupe now and then: a duplicate costs
// no write of its own. Thread-safe. Bounded: when `ids_max` different ids wait, further ones are dropped and
// counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/async.hpp"
#include "base/hash_table.hpp"
#include "base/metrics.hpp"
#include "nostr/ids.hpp"
#include "pg/params.hpp"

namespace todoke::relay {

class DedupeCounts {
 public:
  static constexpr std::size_t kIdsMax = 65'536;  // about 6 MB

  explicit DedupeCounts(metrics::Registry& registry, std::size_t ids_max = kIdsMax);

  void hit(const nostr::EventId& id, SystemTime at);
  // Time to flush.
  [[nodiscard]] bool is_half_full();

  // Takes what has been counted, as the parameters of add_dedupe_hits; nothing when there is nothing.
  struct Counted {
    std::vector<std::string> ids;
    std::vector<std::int64_t> hits;
    std::vector<SystemTime> last_seen;
    [[nodiscard]] pg::Params params() const { return {ids, hits, last_seen}; }
  };
  Counted take_counted();
  // Puts back what could not be written.
  void put_back(const Counted& counted);

 private:
  struct Hits {
    std::int64_t count = 0;
    SystemTime last_seen{};
  };
  void add(const nostr::EventId& id, std::int64_t count, SystemTime at);

  const std::size_t ids_max_;
  metrics::Counter& dropped_;  // todoke_dedupe_counts_dropped_total
  std::mutex mutex_;
  HashMap<nostr::EventId, Hits> hits_;
};

}  // namespace todoke::relay
