// Keeps the database within what it may hold: capacity.max_bytes and capacity.max_events for all of it, and the limits
// of topics that let their oldest events go (for the others topic_gate.hpp refuses).
//
//   measure ──▶ share in use ──▶ pressure (outbox/pressure.hpp): 85 % no backfill, 92.5 % low-priority topics held,
//                                100 % the oldest week goes, one at each look, until 95 % is in use
//
// Nothing younger than capacity.keep_days goes for the node. Where nothing older is left, the node takes no event
// (`restricted: capacity`) until 95 % is in use. It never changes which topics are enabled.
//
// What counts as used is the smaller of two. The size of the database on the disk: below its limit there is nothing to
// do. And what its events need, reckoned from the counters of cn_relay.topic_usage (bytes_needed): room inside of tables
// that was freed is used again, but files keep their size, which alone would have everything purged. No rows are
// counted.
//
// Cost: a look every 5 s where there is a limit, once a minute otherwise. Several relays of one database all look; their
// purges keep out of each other's way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/config.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "outbox/pressure.hpp"
#include "pg/pool.hpp"
#include "relay/topic_book.hpp"
#include "relay/topic_gate.hpp"

namespace todoke::relay {

struct CapacityLimits {
  std::int64_t bytes_max = 0;   // 0: none
  std::int64_t events_max = 0;  // 0: none
  std::int32_t keep_days = 7;
  bool has_search = false;
  [[nodiscard]] bool any() const { return bytes_max > 0 || events_max > 0; }
};

CapacityLimits capacity_from(const Config& config);

// What the database holds.
struct DatabaseUse {
  std::int64_t size = 0;  // on the disk
  std::int64_t events = 0;
  std::int64_t bytes = 0;  // of the events, as topic_usage counts them
};

Task<DatabaseUse> database_use(pg::Connection& connection, Deadline deadline);

// Pure: what events need on the disk in all. topic_usage leaves out the log and the search index. Measured with 10,000
// notes of 110 and 660 bytes with three tags: 1.6 and 1.5 times what it counts, 2.3 and 2.5 times with the index.
std::int64_t bytes_needed(const DatabaseUse& use, bool has_search);
// Pure: the larger share of the two limits, in thousandths.
std::int64_t share_in_use(const DatabaseUse& use, const CapacityLimits& limits);
// Pure: how many of its oldest events a topic must lose to be within its limits, if all are of one size.
std::int64_t events_to_drop(const TopicUse& use, const TopicLimits& limits);

enum class WeekPurge {
  dropped,
  put_off,    // another process purges, or a transaction is in the way
  none_left,  // nothing is old enough
};

// What can be purged (purge.hpp).
struct OldestPurge {
  // The oldest week of regular events, if it is older than so many days.
  std::function<Task<WeekPurge>(std::int32_t keep_days)> week;
  // About so many of the oldest events of a topic, of those that have no other topic. Gives how many went.
  std::function<Task<std::int64_t>(std::string topic, std::int64_t events)> of_topic;
};

// From `pool`, for as long as a purge takes. Both outlive what is returned.
OldestPurge purge_with(pg::Pool& pool, const Clock& clock);

class CapacityKeeper final : public PeriodicService {
 public:
  CapacityKeeper(const Executor& executor, CapacityLimits limits, OldestPurge purge, const TopicBook& topics,
                 pg::Pool& pool, outbox::Pressure& pressure, HealthBoard& health,
                 metrics::Registry& registry);

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> run() override;

  // From anywhere. Looks at once.
  void set_limits(const CapacityLimits& limits);

 private:
  Task<void> round(RoundCause cause) override;
  Task<DatabaseUse> measure();
  Task<void> purge_week(std::int32_t keep_days, std::int64_t share);
  Task<void> purge_topics();
  Task<pg::Result> topics_over();
  void report(const DatabaseUse& use, const CapacityLimits& limits, std::int64_t share);

  SharedValue<CapacityLimits> limits_;
  OldestPurge purge_;
  const TopicBook& topics_;
  pg::Pool& pool_;
  outbox::Pressure& pressure_;
  HealthBoard& health_;
  int looks_until_measured_ = 0;  // where there is no limit
  metrics::Gauge& size_;          // todoke_database_bytes
  metrics::Gauge& bytes_;         // todoke_capacity_bytes
  metrics::Gauge& bytes_max_;     // todoke_capacity_bytes_max
  metrics::Gauge& events_;        // todoke_capacity_events
  metrics::Gauge& events_max_;    // todoke_capacity_events_max
  metrics::Gauge& node_full_;     // todoke_capacity_node_full
  metrics::Counter& weeks_;       // todoke_capacity_partitions_purged_total
  metrics::Counter& of_topics_;   // todoke_capacity_topic_events_purged_total
};

}  // namespace todoke::relay
