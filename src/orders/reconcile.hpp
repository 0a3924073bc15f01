// Compares the three books that speak of an order: outbox and ledger, the journal of tries, and the broker's
// own. Names each difference; changes nothing. Reads in pages, and asks the broker for one order at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orders/adapter.hpp"
#include "pg/connection.hpp"

namespace todoke::orders {

// What is known of one order that has ended.
struct OrderBooks {
  bool succeeded = false;                    // the outbox: succeeded, else aborted
  bool is_conflict = false;                  // aborted because the ledger belongs to another content
  std::optional<std::string> ledger_status;  // none: there is no row (any more)
  bool ledger_may_be_gone = false;           // its time is over
  std::optional<Decimal> executed_qty;       // as the ledger has it
  bool journal_has_success = false;
  bool settled_by_hand = false;
  std::optional<FindOutcome> broker;  // none: not asked
};

// In words; empty when the books agree. Pure.
std::vector<std::string> differences(const OrderBooks& books);

struct ReconcileProgress {
  std::int64_t orders = 0;
  std::int64_t open = 0;  // not settled yet: nothing to compare
  std::int64_t asked = 0;
  std::int64_t different = 0;
};

struct ReconcileOptions {
  std::string adapter;
  SystemTime since{};
  BrokerAdapter* broker = nullptr;  // null: the broker is not asked
  std::chrono::milliseconds broker_timeout{2'500};
  // An order that differs: its id, the hash of its key, and what differs.
  std::function<void(std::int64_t id, const std::string& key_hash, const std::string& difference)>
      on_difference;
  std::function<void(const ReconcileProgress&)> on_progress;  // after each page
};

Task<ReconcileProgress> reconcile(pg::Connection& connection, ReconcileOptions options);

}  // namespace todoke::orders
