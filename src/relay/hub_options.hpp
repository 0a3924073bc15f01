// What the parts of the hub are bounded by.
#pragma once

#include <chrono>
#include <cstddef>

#include "nostr/rules.hpp"
#include "pg/connection.hpp"
#include "relay/recent_cache.hpp"

namespace todoke::relay {

struct HubOptions {
  // For following the log: a connection of its own, so that slow queries don't hold live delivery back.
  pg::ConnectOptions connect;
  nostr::TopicPolicy policy = nostr::TopicPolicy::topics;
  std::size_t subscriptions_max = 50;  // of a connection
  // Filters of subscriptions and of COUNTs that wait, with their entries in the index. A list of 2,000
  // authors takes 0.45 MiB; eight of those are a client that follows many in several views.
  std::size_t filter_bytes_max = 4 * 1024 * 1024;           // of a connection
  std::size_t filter_bytes_in_all_max = 256 * 1024 * 1024;  // of the process
  std::size_t reads_max = 4;                                // of a connection, at once
  // A read holds up to 2 MiB of JSON and a piece of 1 MiB, about twice that as objects: 100 MiB for all.
  std::size_t reads_under_way_max = 16;
  std::size_t fills_under_way_max = 4;   // of windows of recent events, each twice such a read
  std::size_t counts_under_way_max = 4;  // of the process; others stand in line as reads do
  std::size_t counts_waiting_max = 50;   // of a connection
  // Time of a client's reads, and of its COUNTs, for every minute; beyond it others go first. Zero: none.
  std::chrono::milliseconds read_budget{0};
  // Sets of ids (NIP-77): events of one; sets of a connection; bytes of all of the process, 40 an event and
  // twice that while a set grows; how long one stays open while its client is silent.
  std::size_t set_events_max = 1'000'000;
  std::size_t sets_max = 4;
  std::size_t set_bytes_in_all_max = 256 * 1024 * 1024;
  std::chrono::milliseconds set_idle_max{120'000};
  // Of an answer; it goes as twice as much hex. The ids of 7,800 events.
  std::size_t set_answer_bytes_max = 250'000;
  std::size_t waiting_max = 5'000;  // events that wait for a stored read
  std::size_t batches_max = 256;    // of the writer, while the log is being followed
  std::chrono::milliseconds query_timeout{5'000};
  std::chrono::milliseconds poll_every{500};
  CacheLimits cache;
};

}  // namespace todoke::relay
