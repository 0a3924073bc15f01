// "The log has moved", inside the process: quicker than NOTIFY and as little to be relied on. Thread-safe;
// callbacks run on the thread that calls moved() and must be short.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace todoke::outbox {

class LogSignal {
 public:
  // Ends when it is dropped.
  using Subscription = std::shared_ptr<std::function<void()>>;

  [[nodiscard]] Subscription subscribe(std::function<void()> callback) {
    auto subscription = std::make_shared<std::function<void()>>(std::move(callback));
    const std::lock_guard lock(mutex_);
    callbacks_.push_back(subscription);
    return subscription;
  }

  void moved() {
    const std::lock_guard lock(mutex_);
    callbacks_.remove_if([](const auto& weak) {
      const auto callback = weak.lock();
      if (callback) (*callback)();
      return callback == nullptr;
    });
  }

 private:
  std::mutex mutex_;
  std::list<std::weak_ptr<std::function<void()>>> callbacks_;
};

}  // namespace todoke::outbox
