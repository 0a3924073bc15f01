// A broker of the house: fills every order whole, at its price or, at the market, at one that follows from
// the instrument. Faults by configuration, drawn from the seed, the order's key and the number of the try, so
// that a run can be repeated.
//
// Its book is a table: it outlives the worker, as a broker does, and can be asked. An order that is in the
// book is not executed again; a second copy is counted and answered as a duplicate. An order is known by its
// id and its outbox row: a key that comes again for another order is another order. Rejected orders are not
// kept. One statement for each order, on a connection of the pool; an order that gets none in time has not
// reached the broker.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/config.hpp"
#include "orders/core/adapter.hpp"
#include "orders/core/exec_result.hpp"
#include "pg/pool.hpp"

namespace todoke::orders {

enum class PaperAnswer { fill, partial, reject, timeout, lost, down };

struct PaperOptions {
  std::chrono::milliseconds latency{0};
  int partial_percent = 0;
  int reject_percent = 0;
  int timeout_percent = 0;
  int lost_percent = 0;
  std::vector<PaperAnswer> first;  // of the first tries of each order
  std::chrono::milliseconds outage{0};
  std::uint64_t seed = 1;

  static Expected<PaperOptions> from(const Config& config);
};

// The answer to a try; `tried` counts the earlier claims of this order. Pure.
PaperAnswer paper_answer(const PaperOptions& options, std::string_view key, std::size_t tried);
// The price of an order at the market. Pure.
Decimal paper_price(const PaperOptions& options, std::string_view instrument);

class PaperAdapter final : public BrokerAdapter {
 public:
  PaperAdapter(PaperOptions options, pg::Pool& pool, const Clock& clock);

  [[nodiscard]] std::string_view name() const override { return "paper"; }
  [[nodiscard]] bool can_find() const override { return true; }
  Task<SendOutcome> send(SendRequest request, Deadline deadline) override;
  Task<FindOutcome> find(SendRequest request, Deadline deadline) override;

 private:
  struct Booked {
    bool is_new = false;
    std::string order_ref;
    std::string outcome;
    Decimal px;
    Decimal qty;
    SystemTime executed_at{};
  };
  [[nodiscard]] bool is_down();
  Task<Booked> execute(pg::Connection& book, const SendRequest& request, PaperAnswer answer,
                       Deadline deadline);
  static ExecResult result_of(const Booked& booked, const Order& order);

  PaperOptions options_;
  pg::Pool& pool_;
  const Clock& clock_;
  std::optional<SteadyTime> first_order_at_;
};

// Fills every order at once and keeps nothing: for measurements of everything else.
class NoopAdapter final : public BrokerAdapter {
 public:
  [[nodiscard]] std::string_view name() const override { return "noop"; }

  Task<SendOutcome> send(SendRequest request, Deadline) override {
    SendOutcome outcome;
    outcome.result.status = ExecStatus::ok;
    outcome.result.broker = {"noop", ""};
    outcome.result.fills.push_back(
        {request.order->price.value_or(Decimal(1)), request.order->qty, SystemTime{}});
    sum_fills(outcome.result, *request.order);
    co_return outcome;
  }
  Task<FindOutcome> find(SendRequest, Deadline) override { co_return FindOutcome{}; }
};

}  // namespace todoke::orders
