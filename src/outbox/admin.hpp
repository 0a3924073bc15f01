// What an operator does with consumers: look, pause, replay, rebuild, dead letters. For commands and the
// Admin API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "outbox/log_row.hpp"
#include "pg/connection.hpp"

namespace todoke::outbox {

struct ConsumerView {
  std::string name;
  std::int64_t last_seq = 0;
  std::int64_t head = 0;
  std::int64_t backlog_rows = 0;
  double backlog_seconds = 0;
  bool mandatory = false;
  bool paused = false;
  std::string state;  // live, rebuilding, needs_rebuild
  std::int64_t epoch = 0;
  std::optional<std::string> owner;
  bool held = false;        // by an instance whose lease has not lapsed
  double idle_seconds = 0;  // since its offset moved
  std::int64_t purged_rows = 0;
  std::int64_t dead_letters = 0;
  std::int64_t rebuild_done = 0;
  std::int64_t rebuild_total = 0;
  std::optional<double> rebuilding_seconds;
  bool has_role = false;  // of its own in the database, which a pause holds
};

// All, or the one that is named. At most 1,000.
Task<std::vector<ConsumerView>> list_consumers(pg::Connection& connection, std::optional<std::string> name,
                                               Deadline deadline);

// Each refuses a name that nobody has.
Task<Expected<void>> set_paused(pg::Connection& connection, std::string name, bool paused, Deadline deadline);

// Where to go back to: after which seq, or the rows since a moment (unix seconds).
struct ReplayPoint {
  std::optional<std::int64_t> after_seq;
  std::optional<double> since;
};
// The seq after which the consumer goes on. Refused, with a pointer to rebuild, where retention has taken
// rows after that point.
Task<Expected<Seq>> replay(pg::Connection& connection, std::string name, ReplayPoint point,
                           Deadline deadline);

// The node that runs the consumer does it.
Task<Expected<void>> ask_for_rebuild(pg::Connection& connection, std::string name, Deadline deadline);

struct DeadLetter {
  std::int64_t seq = 0;
  std::string op;
  std::string event_id;
  std::string topic_id;
  std::string error;
  std::int32_t tries = 0;
  std::string failed_at;
};
Task<std::vector<DeadLetter>> list_dead_letters(pg::Connection& connection, std::string name,
                                                std::int32_t most, Deadline deadline);
// One, or all of the consumer; how many.
Task<std::size_t> retry_dead_letters(pg::Connection& connection, std::string name,
                                     std::optional<std::int64_t> seq, Deadline deadline);
Task<std::size_t> drop_dead_letters(pg::Connection& connection, std::string name,
                                    std::optional<std::int64_t> seq, Deadline deadline);

}  // namespace todoke::outbox
