// Carries reports from the threads of a FIX session to the event loop, in order. Bounded: a session that
// finds kReportsMax reports waits until the loop has drained them, and so reads nothing more from its socket.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "orders/brokers/fix/engine/session.hpp"

namespace todoke::orders {

class FixInbox {
 public:
  // Some seconds of a busy session, and a few megabytes.
  static constexpr std::size_t kReportsMax = 10'000;

  struct Messages {
    std::vector<fix::Report> reports;
    std::vector<fix::Refused> refused;
  };

  // Calls `wake` on the session's threads with every arrival.
  explicit FixInbox(std::function<void()> wake) : wake_(std::move(wake)) {}

  void push(fix::Report report) {
    {
      std::unique_lock lock(mutex_);
      room_.wait(lock, [this] { return closing_ || waiting_.reports.size() < kReportsMax; });
      waiting_.reports.push_back(std::move(report));
    }
    wake_();
  }
  void push(fix::Refused refused) {
    {
      const std::lock_guard lock(mutex_);
      // As many as messages of ours that a session remembers: more can't come.
      waiting_.refused.push_back(std::move(refused));
    }
    wake_();
  }
  // Everything since the last call.
  Messages drain() {
    Messages drained;
    {
      const std::lock_guard lock(mutex_);
      std::swap(drained, waiting_);
    }
    room_.notify_all();
    return drained;
  }
  // Why the session is not logged on, in the last words of either side.
  void set_trouble(std::string text) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(text);
  }
  std::string trouble() {
    const std::lock_guard lock(mutex_);
    return trouble_;
  }
  // The session ends: push() waits no more. Messages that still come are kept.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    room_.notify_all();
  }

 private:
  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable room_;
  Messages waiting_;
  std::string trouble_;
  bool closing_ = false;
};

}  // namespace todoke::orders
