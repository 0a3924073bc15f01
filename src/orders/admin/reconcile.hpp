// Compares the three books that speak of an order: outbox and ledger, the journal of tries, and the broker's
// own. Names each difference; changes nothing. Reads in pages, and asks the broker about a page at a time.
//
// Orders move on during the comparison: a fill may come between the reading and the broker's answer. So it
// reads the orders that differ a second time after kSecondLookAfter. An order that agrees with the broker's
// answer then is no difference; one that has changed counts as changed, and the next run compares it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orders/core/adapter.hpp"
#include "pg/connection.hpp"

namespace todoke::orders {

// One order that has ended, as the books show it.
struct OrderBooks {
  bool succeeded = false;                    // the outbox: succeeded, else aborted
  bool is_conflict = false;                  // aborted because the ledger belongs to another content
  std::optional<std::string> ledger_status;  // none: there is no row (any more)
  bool ledger_may_be_gone = false;           // its time is over
  std::optional<Decimal> executed_qty;       // as the ledger has it
  bool journal_has_success = false;
  bool settled_by_hand = false;
  std::optional<FindOutcome> broker;  // none: not asked

  // Whether both were read of an order that has not changed meanwhile.
  [[nodiscard]] bool is_same_order_as(const OrderBooks& other) const {
    return succeeded == other.succeeded && ledger_status == other.ledger_status &&
           executed_qty == other.executed_qty;
  }
};

// In words; empty when the books agree. Pure.
std::vector<std::string> differences(const OrderBooks& books);

struct ReconcileProgress {
  std::int64_t orders = 0;
  std::int64_t open = 0;  // not settled yet: nothing to compare
  std::int64_t asked = 0;
  std::int64_t not_asked = 0;  // although they could have been
  std::int64_t changed = 0;    // while they were compared
  std::int64_t different = 0;
};

// By then the ledger has the reports that came while no try waited for them.
inline constexpr std::chrono::milliseconds kSecondLookAfter{2'000};

struct ReconcileOptions {
  std::string adapter;
  SystemTime since{};
  BrokerBook* broker = nullptr;  // null: the broker is not asked
  // An order that differs: its id, the hash of its key, and what differs.
  std::function<void(std::int64_t id, const std::string& key_hash, const std::string& difference)>
      on_difference;
  std::function<void(const std::string& notice)> on_notice;   // why some orders can't be asked about
  std::function<void(const ReconcileProgress&)> on_progress;  // after each page
};

Task<ReconcileProgress> reconcile(pg::Connection& connection, ReconcileOptions options);

}  // namespace todoke::orders
