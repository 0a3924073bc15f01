// What came by gossip lately, and in which channel: an event of several topics that several nodes pass on
// from one into the other goes out of this node only where it has not been seen yet. Two generations, at most
// 2 * `kGenerationMax` entries, about 4 MB.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/hash_table.hpp"
#include "gossip/ids.hpp"

namespace todoke::gossip {

class RecentArrivals {
 public:
  static constexpr std::size_t kGenerationMax = 16'384;

  void add(const ChannelId& channel, const nostr::EventId& id) {
    newer_.insert(key_of(channel, id));
    if (newer_.size() < kGenerationMax) return;
    older_.swap(newer_);
    newer_.clear();
  }
  [[nodiscard]] bool contains(const ChannelId& channel, const nostr::EventId& id) const {
    const auto key = key_of(channel, id);
    return newer_.contains(key) || older_.contains(key);
  }

 private:
  using Key = nostr::FixedBytes<struct ArrivalTag, 64>;
  static Key key_of(const ChannelId& channel, const nostr::EventId& id) {
    Key::Bytes bytes{};
    const auto middle = std::copy(channel.bytes().begin(), channel.bytes().end(), bytes.begin());
    std::copy(id.bytes().begin(), id.bytes().end(), middle);
    return Key(bytes);
  }
  HashSet<Key> newer_;
  HashSet<Key> older_;
};

}  // namespace todoke::gossip
