// Proves from the tables that nothing was skipped: what each consumer recorded of what it took against the
// log, and the log against the events, both ways.
//
// Reads everything once, in pages; a running node is not disturbed beyond the reading.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "outbox/log_row.hpp"
#include "pg/connection.hpp"

namespace todoke::outbox {

struct RangeDifference {
  std::int64_t from_seq;  // exclusive
  std::int64_t to_seq;
  std::int64_t in_log;
  std::int64_t recorded;  // -1: nothing was recorded
};

struct ConsumerAudit {
  std::string name;
  std::int64_t last_seq = 0;
  std::int64_t rows = 0;     // that were recounted
  std::int64_t skipped = 0;  // rows of ranges of which it is not known how much was taken
  bool keeps_record = false;
  std::vector<RangeDifference> differences;
};

struct LogAudit {
  std::int64_t dropped_until = 0;
  std::int64_t head = 0;
  std::int64_t purged = 0;                          // upserts whose event was purged, as it should be
  std::vector<std::int64_t> upserts_without_event;  // seqs; the first 1,000
  std::vector<std::string> events_without_row;      // ids; the first 1,000
  // Ids, the first 1,000: their effect has ended, and no delete row tells it. For events that ended before
  // the oldest row of the log this is not known.
  std::vector<std::string> losses_without_row;
};

struct Audit {
  LogAudit log;
  std::vector<ConsumerAudit> consumers;
  [[nodiscard]] bool is_clean() const;
};

// The rows of (from, to].
Task<RowDigest> digest_of_log(pg::Connection& connection, std::int64_t from, std::int64_t to,
                              Deadline deadline);

// `progress` gets a line now and then.
Task<Audit> audit(pg::Connection& connection, std::function<void(const std::string&)> progress);

}  // namespace todoke::outbox
