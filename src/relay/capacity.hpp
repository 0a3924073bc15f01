// Keeps the database within what it may hold: capacity.max_bytes and capacity.max_events for all of it, and
// the limits of topics that let their oldest events go (for the others topic_gate.hpp refuses).
//
//   measure ──▶ share in use ──▶ pressure (outbox/pressure.hpp): 85 % no backfill, 92.5 % low-priority
//                                topics held, 100 % the oldest week goes, one at each look, until 95 % is
//                                in use
//
// Nothing younger than capacity.keep_days goes for the node, and only whole weeks do: what is kept longer
// than the node's period, versions, ids and tombstones stay. Where no week is left that may go, the node
// takes no event (`restricted: capacity`) until 95 % is in use. It never changes which topics are enabled.
//
// What counts as used is the smaller of two. The size of the database on the disk: below its limit there is
// nothing to do. And what its content needs (bytes_needed), reckoned from the counters of
// cn_relay.topic_usage and the sizes of what outlives the events: room inside of tables that was freed is
// used again, but files keep their size, which alone would have everything purged. No rows are counted.
//
// In a topic that lets its oldest go, what lost its effect goes first, so that nobody drives the others'
// events out by replacing one of his own again and again. A walk remembers its place in this process
// (purge.hpp).
//
// Cost: a look every 5 s where there is a limit, once a minute otherwise. Several relays of one database all
// look; their purges keep out of each other's way.
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
  std::int32_t regular_days = 30;  // topics that are kept longer outlive their week
  bool has_search = false;
  [[nodiscard]] bool any() const { return bytes_max > 0 || events_max > 0; }
};

CapacityLimits capacity_from(const Config& config);

// What the database holds.
struct DatabaseUse {
  std::int64_t size = 0;  // on the disk
  std::int64_t events = 0;
  std::int64_t bytes = 0;  // of the events, as topic_usage counts them
  std::int64_t kept = 0;   // of that, what no purge of weeks frees
  // What is there without its event, about: ids that are only known, tombstones, current versions once more,
  // who has vanished.
  std::int64_t marks = 0;
};

Task<DatabaseUse> database_use(pg::Connection& connection, Deadline deadline);

// Pure: what all of it needs on the disk. topic_usage leaves out the log and the search index. Measured with
// 10,000 notes of 110 and 660 bytes with three tags: 1.6 and 1.5 times what it counts, 2.3 and 2.5 times with
// the index.
std::int64_t bytes_needed(const DatabaseUse& use, bool has_search);
// Pure: what of that capacity can't free.
std::int64_t bytes_that_stay(const DatabaseUse& use, bool has_search);
// Pure: the larger share of the two limits, in thousandths.
std::int64_t share_in_use(const DatabaseUse& use, const CapacityLimits& limits);
// Pure: the health line. `is_full`: the node takes no events.
std::string capacity_text(const DatabaseUse& use, const CapacityLimits& limits, bool is_full);
// Pure: how many of its oldest events a topic must lose to be within its limits, if all are of one size.
std::int64_t events_to_drop(const TopicUse& use, const TopicLimits& limits);

enum class WeekPurge {
  dropped,
  under_way,  // some of it was moved; go on at once
  put_off,  // another process purges, a transaction is in the way, or the clocks of node and database differ
  none_left,  // nothing is old enough
};

// What can be purged (purge.hpp).
struct OldestPurge {
  // The oldest week of regular events, if it is older than so many days.
  std::function<Task<WeekPurge>(std::int32_t keep_days, std::int32_t regular_days)> week;
  // About so many events of a topic: those that lost their effect, then the oldest of those that have no
  // other topic. Gives how many went.
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
  Task<void> purge_week(const CapacityLimits& limits, std::int64_t share);
  Task<void> purge_topics();
  Task<pg::Result> topics_over();
  void report(const DatabaseUse& use, const CapacityLimits& limits);

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
  metrics::Gauge& stays_;         // todoke_capacity_lasting_bytes
  metrics::Gauge& node_full_;     // todoke_capacity_node_full
  metrics::Counter& weeks_;       // todoke_capacity_partitions_purged_total
  metrics::Counter& of_topics_;   // todoke_capacity_topic_events_purged_total
};

}  // namespace todoke::relay
