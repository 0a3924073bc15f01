#include <map>
#include <mutex>

#include "counterpart.hpp"
#include "orders_fix/rig.hpp"

namespace todoke::test {
namespace {

// The adapter's link has a loop of its own: calls go there, and the caller's loop waits.
class OnItsLoop final : public orders::BrokerAdapter {
 public:
  explicit OnItsLoop(std::shared_ptr<FixSide> side) : side_(std::move(side)) {}

  [[nodiscard]] std::string_view name() const override { return side_->adapter().name(); }
  [[nodiscard]] std::string broker_id(const std::string& key) const override {
    return side_->adapter().broker_id(key);
  }
  [[nodiscard]] bool can_find() const override { return side_->adapter().can_find(); }
  Task<orders::SendOutcome> send(orders::SendRequest request, Deadline deadline) override {
    co_return side_->send(request, std::chrono::duration_cast<Millis>(deadline.left()));
  }
  Task<orders::FindOutcome> find(orders::SendRequest request, Deadline deadline) override {
    co_return side_->find(request, std::chrono::duration_cast<Millis>(deadline.left()));
  }

 private:
  std::shared_ptr<FixSide> side_;
};

class FixCounterpart final : public Counterpart {
 public:
  std::unique_ptr<orders::BrokerAdapter> adapter(const Executor&, Behaviour behaviour) override {
    if (side_) side_->stop();
    broker_.answer_orders([this, behaviour](const FixMessage& order) { return answer(order, behaviour); });
    broker_.answer_requests([this](const FixMessage& request) {
      const std::lock_guard lock(mutex_);
      if (executed_[request.at(11)] == 0) return FixAnswer{{unknown_order(request)}, false};
      return FixAnswer{{status(request, "2", "0.1", "0.3")}, false};
    });
    if (behaviour == Behaviour::is_down) broker_.stop();
    side_ = std::make_shared<FixSide>(database_, broker_.port());
    if (behaviour != Behaviour::is_down) side_->await_logon();
    return std::make_unique<OnItsLoop>(side_);
  }

  Task<int> executions(std::string broker_id) override {
    const std::lock_guard lock(mutex_);
    co_return executed_[broker_id];
  }

 private:
  FixAnswer answer(const FixMessage& order, Behaviour behaviour) {
    const std::lock_guard lock(mutex_);
    const auto id = order.at(11);
    const bool is_first = tried_[id]++ == 0;
    if (is_first && behaviour == Behaviour::rejects) return FixAnswer{{reject(order, "3")}, false};
    if (is_first && behaviour == Behaviour::stays_silent) return FixAnswer{};
    if (executed_[id] > 0) return FixAnswer{{reject(order, "6")}, false};
    ++executed_[id];
    return is_first && behaviour == Behaviour::loses_answers ? FixAnswer{} : whole(order);
  }

  TestDatabase database_;
  std::mutex mutex_;
  std::map<std::string, int> tried_;
  std::map<std::string, int> executed_;
  Broker broker_;
  std::shared_ptr<FixSide> side_;
};

}  // namespace

std::unique_ptr<Counterpart> make_fix_counterpart() {
  return std::make_unique<FixCounterpart>();
}

}  // namespace todoke::test
