// An order that the worker holds: its row, the state of its ledger, the outcome of its try, and the values to
// be written.
//
// The ledger is the truth about an outcome: one transaction ends both row and ledger in the same outcome, and
// where the ledger has ended already, the row follows it and the worker sends nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"
#include "queue/port.hpp"

namespace todoke::orders {

// The state of the ledger under the row's key, as the claim read it.
enum class LedgerState {
  missing,      // created when the row is settled
  open,         // accepted, not settled
  succeeded,    // final
  failed,       // settled; a row that is pending all the same has been requeued
  conflicting,  // another content under the same key
};

// Whether the row follows the ledger, unsent. `lapsed`: it was taken over from a worker whose lease had
// lapsed.
bool has_last_word(LedgerState ledger, bool lapsed);

// One line of the journal.
struct TryRecord {
  std::string broker_id;
  SystemTime began_at{};
  SystemTime ended_at{};
  SteadyTime::duration took{};  // by a clock that is never set
  std::string outcome;          // ok, or a reason code
  std::optional<std::string> broker_ref;
  std::string note;  // names the unreadable parts of the broker's answer; empty: none
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
  ExecResult result;           // as the adapter gave it
  std::string error_code;
  std::string error_msg;
  std::optional<TryRecord> tried;

  // After on_verdict(), for an order that is over.
  int http_status = 0;
  std::string payload;  // the ExecResult as JSON
  std::string result_digest;

  [[nodiscard]] bool follows_ledger() const { return has_last_word(ledger, row.lapsed); }
};

// How long the broker took.
std::int64_t sending_ms(const OrderJob& job);

}  // namespace todoke::orders
