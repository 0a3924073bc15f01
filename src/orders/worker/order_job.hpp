// An order that the worker holds: its row, what became of its try, and what is to be written.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"
#include "orders/worker/ledger.hpp"
#include "queue/port.hpp"

namespace todoke::orders {

// One line of the journal.
struct TryRecord {
  std::string broker_id;
  SystemTime began_at{};
  SystemTime ended_at{};
  SteadyTime::duration took{};  // by a clock that is never set
  std::string outcome;          // ok, or a reason code
  std::optional<std::string> broker_ref;
  std::string note;  // what could not be read of the broker's answer; empty: nothing
};

struct OrderJob : queue::Job {
  // As claimed.
  std::string key;
  std::string key_hash;
  std::string document;  // order_request_json
  std::optional<std::string> trace_id;
  std::optional<std::string> last_error_code;
  std::optional<std::string> last_error_msg;
  LedgerState ledger = LedgerState::open;
  // The broker had an order of this key before a try of ours can have reached it; handle() may find that out.
  bool key_was_taken = false;
  SystemTime created_at{};      // by the database
  SystemTime claimed_at{};      // by the database
  SteadyTime claimed_steady{};  // the same moment, or a little before, by our clock

  // After handle().
  std::optional<Order> order;  // none: the document is no valid order
  bool follows_ledger = false;
  queue::Outcome outcome;
  ExecResult result;  // as the adapter gave it
  std::string error_code;
  std::string error_msg;
  std::optional<TryRecord> tried;
  bool is_journaled = false;  // `tried` is in the journal

  // After conclude().
  queue::Verdict verdict;
  int http_status = 0;
  std::string payload;  // the ExecResult as JSON; empty when the ledger is not written
  std::string result_digest;
};

// How long the broker took.
inline std::int64_t sending_ms(const OrderJob& job) {
  return job.tried ? std::chrono::duration_cast<std::chrono::milliseconds>(job.tried->took).count() : 0;
}

}  // namespace todoke::orders
