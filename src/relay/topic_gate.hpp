// Which topics are full (ingest_policy: max_events, max_bytes, when_full), kept by counting and never by
// counting rows: what a topic holds is read from the database's counters (cn_relay.topic_usage) now and then,
// and what its owner, the writer, stores meanwhile is added here.
//
// An event is stored for those of its topics that have room, and refused when none has: a full topic affects
// itself alone. A topic that lets its oldest events go (`drop_oldest`) takes a little more than its limit,
// because they go a moment later (capacity.hpp); beyond that it refuses, too.
//
// Exact for what one writer stores: not one event beyond the limit. Other relays of the database are seen at
// the next reading: what they store in between is how far a topic may go beyond. `drop_oldest`: a tenth more,
// or 100 events or 1 MiB where that is more.
//
// No I/O. Not thread-safe: the writer's own. Memory: a hundred bytes for each limited topic.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash_table.hpp"
#include "relay/incoming.hpp"
#include "relay/topic_book.hpp"

namespace todoke::relay {

struct TopicUse {
  std::int64_t events = 0;
  std::int64_t bytes = 0;
};

// What an event adds to each of its topics, as the database counts it (cn_relay.event_bytes): about what it
// takes in tables and indexes.
TopicUse use_of(const Incoming& incoming);

// Whether a topic with these limits that holds `use` has no room for `more`.
bool is_full(const TopicLimits& limits, const TopicUse& use, const TopicUse& more);

class TopicGate {
 public:
  // Replaces what is known of what topics hold.
  void set_use(HashMap<std::string, TopicUse> use) { use_ = std::move(use); }

  // Takes the topics without room out of each event, as if the events before it were all stored. Those with
  // no topic left are moved out of the batch and given back.
  std::vector<Incoming> keep_out(std::vector<Incoming>& batch, const TopicSet& topics) const;
  // The event was stored.
  void add(const Incoming& incoming, const TopicSet& topics);

 private:
  HashMap<std::string, TopicUse> use_;  // of limited topics
};

}  // namespace todoke::relay
