// What passes between the gossip loop and the library. Messages that came wait to be looked at: the library
// has no back-pressure and drops what is not taken at once, so that its threads put them here. Events wait to
// be sent, in the order of their commits. What does not fit is dropped, and its owner counts it; other nodes
// get a dropped event when they fill what they missed. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gossip/ids.hpp"
#include "nostr/event.hpp"

namespace todoke::gossip {

struct Arrival {
  ChannelId channel;
  NodeId from;
  std::string bytes;

  [[nodiscard]] std::size_t size() const { return bytes.size(); }
};

// Of another node, to be answered.
struct Question {
  NodeId from;
  std::uint64_t number;
  std::string bytes;

  [[nodiscard]] std::size_t size() const { return bytes.size(); }
};

struct Outgoing {
  std::shared_ptr<const nostr::Event> event;
  std::vector<std::string> topics;

  [[nodiscard]] std::size_t size() const { return event->json().size(); }
};

struct QueueLimits {
  std::size_t items_max;
  std::size_t bytes_max;
};

inline constexpr QueueLimits kInboxLimits{16'384,
                                          64 * 1024 * 1024};  // two seconds at the most that is looked at
inline constexpr QueueLimits kOutLimits{65'536, 64 * 1024 * 1024};  // half a minute at the usual pace

// One of each connection at a time, so that they all fit.
inline constexpr QueueLimits kQuestionLimits{65'536, 64 * 1024 * 1024};

template <class Item>
class BoundedQueue {
 public:
  explicit BoundedQueue(QueueLimits limits) : limits_(limits) {}

  enum class Pushed { first, more, dropped };  // first: whoever pops has to be woken
  Pushed push(Item item) {
    const auto bytes = item.size();
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= limits_.items_max || bytes_ + bytes > limits_.bytes_max) return Pushed::dropped;
    bytes_ += bytes;
    waiting_.push_back(std::move(item));
    return waiting_.size() == 1 ? Pushed::first : Pushed::more;
  }

  // The oldest, at most `count`.
  std::vector<Item> pop(std::size_t count) {
    const std::lock_guard lock(mutex_);
    std::vector<Item> oldest;
    oldest.reserve(std::min(count, waiting_.size()));
    while (oldest.size() < count && !waiting_.empty()) {
      bytes_ -= waiting_.front().size();
      oldest.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return oldest;
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  const QueueLimits limits_;
  mutable std::mutex mutex_;
  std::deque<Item> waiting_;
  std::size_t bytes_ = 0;
};

using Inbox = BoundedQueue<Arrival>;
using OutQueue = BoundedQueue<Outgoing>;

}  // namespace todoke::gossip
