// The broker's own book, as `todoke orders reconcile` asks it: a page of orders at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orders/core/adapter.hpp"
#include "orders/core/order.hpp"

namespace todoke::orders {

struct AskedOrder {
  std::int64_t outbox_id = 0;
  std::string idempotency_key;
  Order order;
};

class BrokerBook {
 public:
  struct Answers {
    // One for each order, in their order. None: it was not asked about; a notice has said why.
    std::vector<std::optional<FindOutcome>> of;
    std::vector<std::string> notices;  // for operators, each once for all orders that it is about
  };

  virtual ~BrokerBook() = default;
  BrokerBook() = default;
  BrokerBook(const BrokerBook&) = delete;
  BrokerBook& operator=(const BrokerBook&) = delete;

  // Ends by itself, whatever the broker does. Throws when the database can't be used.
  virtual Task<Answers> ask(std::vector<AskedOrder> orders) = 0;
};

// Through an adapter that this process may use: one order after the other.
class AdapterBook final : public BrokerBook {
 public:
  // `adapter` can find and outlives the book. `limit` is for one order.
  AdapterBook(BrokerAdapter& adapter, std::chrono::milliseconds limit) : adapter_(adapter), limit_(limit) {}
  Task<Answers> ask(std::vector<AskedOrder> orders) override;

 private:
  BrokerAdapter& adapter_;
  std::chrono::milliseconds limit_;
};

}  // namespace todoke::orders
