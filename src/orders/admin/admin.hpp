// The operator's actions on orders: list, show, requeue, release, abort, settle, halt. For commands and the
// Admin API. Every change is one transaction with its audit row; a refusal says what to do instead.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "orders/core/exec_result.hpp"
#include "pg/connection.hpp"

namespace todoke::orders {

struct OrderLine {
  std::int64_t id = 0;
  std::string key_hash;
  std::string status;
  int attempts = 0;
  bool in_doubt = false;
  std::string code;
  double age_seconds = 0;
  double due_in_seconds = 0;
  std::string locked_by;
  std::string adapter;  // that has tried it last; empty: none has
};
struct ListFilter {
  std::optional<std::string> status;
  bool in_doubt = false;
  std::optional<std::string> instrument;
  std::optional<std::string> adapter;  // that has tried it
  std::optional<SystemTime> since;     // accepted then or later
  std::optional<SystemTime> until;     // accepted before
  std::int64_t most = 50;
};
Task<std::vector<OrderLine>> list_orders(pg::Connection& connection, ListFilter filter, Deadline deadline);

// The id of an order by its key, its id, or twelve digits or more of its key's hash; archived ones, too.
Task<Expected<std::int64_t>> find_order(pg::Connection& connection, std::string which, Deadline deadline);

// An order, its tries and its audit, as lines of name and value. `reveal` shows key and content, and is
// audited.
struct OrderDetails {
  std::vector<std::pair<std::string, std::string>> fields;
  std::vector<std::string> tries;
  std::vector<std::string> audit;
};
Task<OrderDetails> show_order(pg::Connection& connection, std::int64_t id, bool reveal, std::string actor,
                              Deadline deadline);

struct Change {
  std::int64_t id = 0;
  std::string actor;  // "operator:alice"
  std::optional<std::string> reason;
  bool force = false;  // also a row that a worker holds
  std::chrono::milliseconds lease{120'000};
};
// Queues an order that is aborted or waiting again, with all its attempts.
Task<Expected<void>> requeue_order(pg::Connection& connection, Change change, Deadline deadline);
// All that match the filter, the newest first: those that are aborted or waiting and, unless the
// filter asks for those, not in doubt. Ignores `change.id`.
struct Requeued {
  std::vector<std::int64_t> ids;
  std::int64_t doubtful = 0;  // left alone
};
Task<Requeued> requeue_orders(pg::Connection& connection, ListFilter filter, Change change,
                              Deadline deadline);
// Takes the order from its worker: it is pending and in doubt.
Task<Expected<void>> release_order(pg::Connection& connection, Change change, Deadline deadline);
Task<Expected<void>> abort_order(pg::Connection& connection, Change change, Deadline deadline);
// Records the outcome that the operator knows.
Task<Expected<void>> settle_order(pg::Connection& connection, Change change, ExecResult result,
                                  Deadline deadline);

struct HaltChange {
  std::string adapter = "*";
  std::string instrument = "*";
  bool refuse_intake = false;
  std::string actor;
  std::optional<std::string> reason;
};
// Returns whether new orders are refused now: a second halt never weakens the first.
Task<bool> halt_orders(pg::Connection& connection, HaltChange change, Deadline deadline);
// False: there was no such halt.
Task<bool> resume_orders(pg::Connection& connection, HaltChange change, Deadline deadline);

struct OrderStats {
  std::vector<std::pair<std::string, std::int64_t>> counts;  // by status
  double oldest_pending_seconds = 0;
  std::int64_t in_doubt = 0;
  std::int64_t workers_alive = 0;
  std::vector<std::string> workers;   // those that died lately, too
  std::vector<std::string> breakers;  // of workers that run and get no order through
  std::vector<std::string> halts;
};
Task<OrderStats> order_stats(pg::Connection& connection, Deadline deadline);

}  // namespace todoke::orders
