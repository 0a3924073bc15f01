// Events on their way out, in the order of their commits. Thread-safe.
//
// Bounded: `events_max` events, `bytes_max` of their JSON. What does not fit is dropped: receivers get it when
// they fill what they missed.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nostr/event.hpp"

namespace todoke::gossip {

struct Outgoing {
  std::shared_ptr<const nostr::Event> event;
  std::vector<std::string> topics;
};

struct OutLimits {
  std::size_t events_max = 65'536;  // half a minute at the usual pace
  std::size_t bytes_max = 64 * 1024 * 1024;
};

class OutQueue {
 public:
  explicit OutQueue(OutLimits limits = {}) : limits_(limits) {}

  enum class Put { first, more, dropped };  // first: the sender has to be woken
  Put put(Outgoing outgoing) {
    const auto bytes = outgoing.event->json().size();
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= limits_.events_max || bytes_ + bytes > limits_.bytes_max) return Put::dropped;
    bytes_ += bytes;
    waiting_.push_back(std::move(outgoing));
    return waiting_.size() == 1 ? Put::first : Put::more;
  }

  std::optional<Outgoing> take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return std::nullopt;
    auto outgoing = std::move(waiting_.front());
    waiting_.pop_front();
    bytes_ -= outgoing.event->json().size();
    return outgoing;
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  const OutLimits limits_;
  mutable std::mutex mutex_;
  std::deque<Outgoing> waiting_;
  std::size_t bytes_ = 0;
};

}  // namespace todoke::gossip
