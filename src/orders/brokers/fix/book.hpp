// The book of a broker that speaks FIX, as far as its reports and its answers to status requests have told:
// the worker that has the session asks about orders in doubt and orders that the broker works on (watch.hpp),
// and stores every report and answer. This book reads them, one statement for a page of orders, and does not
// ask the broker.
//
// When no report has come after the answer to a status request, that answer alone counts: it is the newest
// word of the broker. For an order that is in doubt or works, and whose session no worker has, the book gives
// no answer but a notice.
#pragma once

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "orders/core/adapter.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

class FixBook final : public BrokerBook {
 public:
  static constexpr std::chrono::milliseconds kStatementMax{10'000};

  // The pool outlives the book.
  explicit FixBook(pg::Pool& pool) : pool_(pool) {}

  Task<Answers> ask(std::vector<AskedOrder> orders) override;

 private:
  struct Told;
  void answer(const AskedOrder& order, const Told& told, Answers& answers);

  pg::Pool& pool_;
  std::set<std::string> ownerless_;  // sessions that a notice was given of
};

}  // namespace todoke::orders
