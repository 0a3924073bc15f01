// Orders over a FIX 4.4 session (link.hpp). A try sends one NewOrderSingle and reads its reports until the
// broker has acknowledged the order (GTC) or ended it (IOC, FOK), or until the deadline. A look-up reads the
// stored reports first, and then sends an OrderStatusRequest.
#pragma once

#include <memory>
#include <string>

#include "orders/brokers/fix/link.hpp"
#include "orders/brokers/fix/report.hpp"
#include "orders/core/adapter.hpp"

namespace todoke::orders {

class FixAdapter final : public BrokerAdapter {
 public:
  explicit FixAdapter(std::shared_ptr<FixLink> link) : link_(std::move(link)) {}

  [[nodiscard]] std::string_view name() const override { return "fix"; }
  [[nodiscard]] std::string broker_id(const std::string& idempotency_key) const override;
  [[nodiscard]] bool can_send_now() const override { return link_->can_send_now(); }
  [[nodiscard]] bool can_find() const override { return true; }
  Task<SendOutcome> send(SendRequest request, Deadline deadline) override;
  Task<FindOutcome> find(SendRequest request, Deadline deadline) override;
  // Asks the broker about an order that was written down, whatever is stored, and stores the answer. Does not
  // ask about an order that a try is sending or looking up.
  Task<FindOutcome> ask_broker(SendRequest request, Deadline deadline);

 private:
  Task<SendOutcome> wait_for_outcome(const SendRequest& request, std::shared_ptr<FixAwaited> awaited,
                                     Deadline deadline);
  // `keeps`: the order was written down, so the broker's answer is stored.
  Task<FindOutcome> ask(const SendRequest& request, FixStored stored, bool keeps, Deadline deadline);

  std::shared_ptr<FixLink> link_;
};

}  // namespace todoke::orders
