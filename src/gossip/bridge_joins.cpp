// Which topics the bridge joins, whom it dials, and when it tries again.
#include <algorithm>
#include <utility>

#include "gossip/bridge.hpp"
#include "gossip/channel.hpp"

namespace todoke::gossip {
namespace {

// Joins in one round of the house, so that ten thousand topics at a start hold up nothing.
constexpr std::size_t kJoinsAtOnce = 200;
// Nodes through which a topic is joined; the library keeps about as many neighbours.
constexpr std::size_t kThroughMax = 8;

}  // namespace

void Bridge::follow_topics(const outbox::GossipIn& relay) {
  HashMap<ChannelId, outbox::GossipTopic> wanted;
  for (auto& topic : relay.topics()) {
    if (pressed_ && topic.low_priority) continue;
    const auto channel = channel_of(topic.id);
    channels_.try_emplace(channel, Channel{topic.id, false, {}});
    wanted.emplace(channel, std::move(topic));
  }
  filler_.follow_topics(wanted);
  for (auto it = channels_.begin(); it != channels_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    endpoint_->leave(it->first);
    neighbours_.left(it->first);
    it = channels_.erase(it);
  }
}

void Bridge::forget_ended() {
  std::vector<ChannelId> ended;
  {
    const std::lock_guard lock(told_mutex_);
    ended.swap(ended_);
  }
  for (const auto& channel : ended) {
    const auto found = channels_.find(channel);
    if (found == channels_.end()) continue;
    found->second.joined = false;
    metrics_.rejoined.add();
  }
}

void Bridge::follow_peers() {
  const auto peers = peers_.peers();
  std::erase_if(dialled_, [&](const Dialled& dialled) {
    if (std::find(peers->begin(), peers->end(), dialled.peer) != peers->end()) return false;
    endpoint_->forget(dialled.peer.id);
    return true;
  });
  for (const auto& peer : *peers) {
    if (peer.id == *id_) continue;
    const bool is_there = std::any_of(dialled_.begin(), dialled_.end(),
                                      [&](const auto& dialled) { return dialled.peer == peer; });
    if (!is_there) dialled_.push_back({peer, false, {}});
  }
  const auto neighbours = neighbours_.all();
  const auto now = clock_.steady();
  for (auto& dialled : dialled_) {
    if (neighbours.contains(dialled.peer.id)) {
      dialled.retry.reset();
    } else if (dialled.retry.is_due(now)) {
      endpoint_->dial(dialled.peer.id, dialled.peer.address);
    }
  }
}

// A peer whose address is known now is dialled for every topic.
void Bridge::join_known() {
  std::vector<NodeId> known;
  {
    const std::lock_guard lock(told_mutex_);
    known.swap(known_);
  }
  if (known.empty()) return;
  for (auto& dialled : dialled_) {
    if (std::find(known.begin(), known.end(), dialled.peer.id) != known.end()) dialled.is_known = true;
  }
  std::size_t joins = 0;
  for (auto& [channel, state] : channels_) {
    if (!state.joined) continue;
    if (++joins > kJoinsAtOnce) break;  // the others follow once it is a neighbour in these
    endpoint_->join(channel, known);
  }
}

// Topics that are new, that have ended, or that have no neighbour.
void Bridge::join_again() {
  const auto now = clock_.steady();
  std::vector<NodeId> through;
  for (const auto& [peer, channels] : neighbours_.all()) {
    if (through.size() < kThroughMax) through.push_back(peer);
  }
  std::size_t joins = 0;
  for (auto& [channel, state] : channels_) {
    if (state.joined && neighbours_.has_any(channel)) {
      state.retry.reset();
      continue;
    }
    if (state.joined && through.empty()) continue;
    if (joins >= kJoinsAtOnce) break;
    if (!state.retry.is_due(now)) continue;
    ++joins;
    auto peers = through;
    if (!state.joined) {
      for (const auto& dialled : dialled_) {
        if (dialled.is_known) peers.push_back(dialled.peer.id);
      }
    }
    state.joined = endpoint_->join(channel, peers) || state.joined;
  }
  if (joins >= kJoinsAtOnce) house_is_due_ = true;
}

}  // namespace todoke::gossip
