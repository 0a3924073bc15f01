// "The log has moved", inside the process: quicker than NOTIFY and no more reliable. Thread-safe; callbacks
// run on the thread that calls moved() and must be short.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace todoke::outbox {

class LogSignal {
 public:
  // Ends when it is dropped: from then on its callback runs on no thread. Never to be dropped inside of a
  // callback; may outlive the signal.
  using Subscription = std::shared_ptr<void>;

  [[nodiscard]] Subscription subscribe(std::function<void()> callback) {
    const auto book = book_;
    const auto at = book->add(std::move(callback));
    return {&*at, [book, at](void*) { book->remove(at); }};
  }

  void moved() { book_->call(); }

  // Whether the writer of this process has more to do than it gets done. Consumers that can wait then leave
  // it the machine for a while.
  void set_busy(bool busy) { busy_.store(busy, std::memory_order_relaxed); }
  [[nodiscard]] bool is_busy() const { return busy_.load(std::memory_order_relaxed); }

 private:
  class Book {
   public:
    using Callbacks = std::list<std::function<void()>>;

    Callbacks::iterator add(std::function<void()> callback) {
      const std::lock_guard lock(mutex_);
      return callbacks_.insert(callbacks_.end(), std::move(callback));
    }
    void remove(Callbacks::iterator at) {
      const std::lock_guard lock(mutex_);
      callbacks_.erase(at);
    }
    void call() {
      const std::lock_guard lock(mutex_);
      for (const auto& callback : callbacks_) callback();
    }

   private:
    std::mutex mutex_;
    Callbacks callbacks_;
  };
  std::shared_ptr<Book> book_ = std::make_shared<Book>();
  std::atomic<bool> busy_{false};
};

}  // namespace todoke::outbox
