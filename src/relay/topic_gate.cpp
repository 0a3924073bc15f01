#include "relay/topic_gate.hpp"

#include <algorithm>
#include <utility>

#include "relay/store.hpp"

namespace todoke::relay {
namespace {

constexpr std::int64_t kSlackShare = 10;
constexpr std::int64_t kSlackEvents = 100;
constexpr std::int64_t kSlackBytes = 1024 * 1024;

// Of cn_relay.event_bytes.
constexpr std::int64_t kRowBytes = 800;
constexpr std::size_t kTagShare = 5;

std::int64_t with_slack(std::int64_t limit, std::int64_t least) {
  return limit + std::max(limit / kSlackShare, least);
}

void add_to(TopicUse& use, const TopicUse& more) {
  use.events += more.events;
  use.bytes += more.bytes;
}

}  // namespace

TopicUse use_of(const Incoming& incoming) {
  const auto& event = *incoming.event;
  auto bytes = event.content().size() + kTagShare * event.tags_json().size();
  if (has_nul(event))
    bytes = without_nul(event.content()).size() + kTagShare * event.tags_json().size() + event.json().size();
  return {1, kRowBytes + static_cast<std::int64_t>(bytes)};
}

bool is_full(const TopicLimits& limits, const TopicUse& use, const TopicUse& more) {
  const auto goes_beyond = [&](std::int64_t limit, std::int64_t slack, std::int64_t used) {
    if (limit == 0) return false;
    return used > (limits.drop_oldest ? with_slack(limit, slack) : limit);
  };
  return goes_beyond(limits.events_max, kSlackEvents, use.events + more.events) ||
         goes_beyond(limits.bytes_max, kSlackBytes, use.bytes + more.bytes);
}

std::vector<Incoming> TopicGate::keep_out(std::vector<Incoming>& batch, const TopicSet& topics) const {
  if (!topics.has_limits()) return {};
  HashMap<std::string, TopicUse> reserved;
  const auto takes = [&](const std::string& topic, const TopicUse& more) {
    const auto* limits = topics.limits_of(topic);
    if (limits == nullptr) return true;
    const auto known = use_.find(topic);
    auto& use = reserved.try_emplace(topic, known == use_.end() ? TopicUse{} : known->second).first->second;
    if (is_full(*limits, use, more)) return false;
    add_to(use, more);
    return true;
  };
  std::vector<Incoming> taken;
  std::vector<Incoming> refused;
  taken.reserve(batch.size());
  for (auto& incoming : batch) {
    const auto more = use_of(incoming);
    // A request to vanish makes room.
    if (incoming.event->kind() != nostr::kVanish) {
      std::erase_if(incoming.topics, [&](const auto& topic) { return !takes(topic, more); });
    }
    (incoming.topics.empty() ? refused : taken).push_back(std::move(incoming));
  }
  batch = std::move(taken);
  return refused;
}

void TopicGate::add(const Incoming& incoming, const TopicSet& topics) {
  if (!topics.has_limits()) return;
  const auto more = use_of(incoming);
  for (const auto& topic : incoming.topics) {
    if (topics.limits_of(topic) != nullptr) add_to(use_[topic], more);
  }
}

}  // namespace todoke::relay
