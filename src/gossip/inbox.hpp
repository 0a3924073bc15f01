// What came from the network and waits to be looked at. The library has no back-pressure and drops what is not
// taken at once, so that its threads put messages here; what does not fit is dropped and counted. Thread-safe.
//
// Bounded: `messages_max` messages, `bytes_max` of their text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gossip/ids.hpp"

namespace todoke::gossip {

struct Arrival {
  ChannelId channel;
  NodeId from;
  std::string bytes;
};

struct InboxLimits {
  std::size_t messages_max = 16'384;  // two seconds at the most that is looked at
  std::size_t bytes_max = 64 * 1024 * 1024;
};

class Inbox {
 public:
  explicit Inbox(InboxLimits limits = {}) : limits_(limits) {}

  enum class Put { first, more, dropped };  // first: the reader has to be woken
  Put put(const ChannelId& channel, const NodeId& from, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= limits_.messages_max || bytes_ + bytes.size() > limits_.bytes_max)
      return Put::dropped;
    bytes_ += bytes.size();
    waiting_.push_back({channel, from, std::string(bytes)});
    return waiting_.size() == 1 ? Put::first : Put::more;
  }

  // The oldest, at most `count`.
  std::vector<Arrival> take(std::size_t count) {
    const std::lock_guard lock(mutex_);
    std::vector<Arrival> taken;
    taken.reserve(std::min(count, waiting_.size()));
    while (taken.size() < count && !waiting_.empty()) {
      bytes_ -= waiting_.front().bytes.size();
      taken.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    return taken;
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  const InboxLimits limits_;
  mutable std::mutex mutex_;
  std::deque<Arrival> waiting_;
  std::size_t bytes_ = 0;
};

}  // namespace todoke::gossip
