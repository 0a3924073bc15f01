// Who is a neighbour in which channel, as the endpoint's threads tell it. Thread-safe.
//
// Bounded by the library: a handful of neighbours in each channel that is joined.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/hash_table.hpp"
#include "gossip/ids.hpp"

namespace todoke::gossip {

class Neighbours {
 public:
  void up(const ChannelId& channel, const NodeId& peer) {
    const std::lock_guard lock(mutex_);
    auto& peers = channels_[channel];
    if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
    ++version_;
  }
  void down(const ChannelId& channel, const NodeId& peer) {
    const std::lock_guard lock(mutex_);
    const auto found = channels_.find(channel);
    if (found == channels_.end()) return;
    std::erase(found->second, peer);
    ++version_;
    if (found->second.empty()) channels_.erase(found);
  }
  void left(const ChannelId& channel) {
    const std::lock_guard lock(mutex_);
    channels_.erase(channel);
    ++version_;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    channels_.clear();
    ++version_;
  }

  [[nodiscard]] bool has_any(const ChannelId& channel) const {
    const std::lock_guard lock(mutex_);
    return channels_.contains(channel);
  }
  [[nodiscard]] std::vector<NodeId> of(const ChannelId& channel) const {
    const std::lock_guard lock(mutex_);
    const auto found = channels_.find(channel);
    return found == channels_.end() ? std::vector<NodeId>() : found->second;
  }
  // Grows with every change.
  [[nodiscard]] std::uint64_t version() const {
    const std::lock_guard lock(mutex_);
    return version_;
  }
  [[nodiscard]] std::set<std::pair<ChannelId, NodeId>> pairs() const {
    const std::lock_guard lock(mutex_);
    std::set<std::pair<ChannelId, NodeId>> pairs;
    for (const auto& [channel, peers] : channels_) {
      for (const auto& peer : peers) pairs.emplace(channel, peer);
    }
    return pairs;
  }
  // Each with the number of channels that it shares.
  [[nodiscard]] std::map<NodeId, std::size_t> all() const {
    const std::lock_guard lock(mutex_);
    std::map<NodeId, std::size_t> counts;
    for (const auto& [channel, peers] : channels_) {
      for (const auto& peer : peers) ++counts[peer];
    }
    return counts;
  }

 private:
  mutable std::mutex mutex_;
  HashMap<ChannelId, std::vector<NodeId>> channels_;
  std::uint64_t version_ = 0;
};

}  // namespace todoke::gossip
