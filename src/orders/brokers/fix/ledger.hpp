// Brings reports to the ledger that came when no try waited for them. Adds fills to the result of an order
// that was settled as WORKING. Makes an order due at once whose try had ended without an answer, so that the
// worker looks it up and settles it.
//
// Remembers for each order how far it has come, so that a crash loses nothing. Locks in the common order: the
// outbox row, then the ledger.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/async.hpp"
#include "orders/brokers/fix/report.hpp"
#include "orders/core/db_link.hpp"
#include "orders/core/exec_result.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {

// Brings `result` up to the broker's newest word; pure. True: something has changed.
bool bring_up_to_date(ExecResult& result, const FixView& view, const Order& order);

class FixLedger {
 public:
  // Orders in one round.
  static constexpr std::int64_t kMost = 200;

  FixLedger(const pg::ConnectOptions& connect, std::string session)
      : link_(connect), session_(std::move(session)) {}

  struct Done {
    std::size_t looked_at = 0;
    std::size_t updated = 0;  // results that got fills, or ended
    std::size_t woken = 0;    // orders in doubt that will be settled by what came
  };
  // One round. Skips orders that are being sent; a later round finds them.
  Task<Done> apply(Deadline deadline);
  // Forgets orders and reports without news for `keep`, a bounded number; returns how many.
  Task<std::int64_t> forget(std::chrono::seconds keep, Deadline deadline);
  void close() { link_.close(); }

 private:
  struct Open {
    std::string cl_ord_id;
    std::int64_t outbox_id = 0;
    std::string key;
    std::int64_t stored = 0;
  };
  enum class Step { none, updated, woken, later };
  Task<Step> apply_one(Open open, Deadline deadline);
  Task<Step> decide(pg::Connection& connection, const Open& open, Deadline deadline);
  Task<std::vector<fix::Report>> reports_of(pg::Connection& connection, const std::string& cl_ord_id,
                                            Deadline deadline);

  DbLink link_;
  std::string session_;
};

}  // namespace todoke::orders
