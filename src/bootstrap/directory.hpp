// What the node has published about itself, for who asks over HTTP: the events as they are in effect in the
// relay, signed by the node's key. They come from the database, so any process of the node can answer.
//
// Cost: a look-up by key for each question. Bounded: services of a topic (a handful), hints by `most`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/pool.hpp"

namespace todoke::bootstrap {

struct SignedEvent {
  std::string id;  // hex: with the list's ids, what an ETag can be made of
  std::string json;
  std::int64_t created_at = 0;
};

struct Hints {
  // Where the next question goes on (`since`); that of this one when nothing is new.
  std::int64_t last = 0;
  std::vector<SignedEvent> events;  // published after `since` and still in effect, each once, oldest first
};

class Directory {
 public:
  explicit Directory(pg::Pool& pool) : pool_(pool) {}

  // All of these throw what the database throws.

  // The descriptor (kind 39000), as a list; empty before the node has published it.
  Task<std::vector<SignedEvent>> nodes(Deadline deadline);
  // What the node does for a topic (kind 39001): an event for each role, in the order of their `d`.
  Task<std::vector<SignedEvent>> topic_services(std::string topic, Deadline deadline);
  // What was published since: up to `most` publications are looked at.
  Task<Hints> hints_after(std::int64_t since, std::int32_t most, Deadline deadline);

 private:
  pg::Pool& pool_;
};

}  // namespace todoke::bootstrap
