#include "relay/fan_out.hpp"

#include <string_view>
#include <utility>

#include "nostr/replies.hpp"

namespace todoke::relay {

FanOut::FanOut(std::size_t waiting_max, const Clock& clock, RelayMetrics& metrics,
               std::function<void(Subscription&)> on_overflow)
    : waiting_max_(waiting_max), clock_(clock), metrics_(metrics), on_overflow_(std::move(on_overflow)) {}

std::chrono::sys_seconds FanOut::now() const {
  return std::chrono::time_point_cast<std::chrono::seconds>(clock_.now());
}

void FanOut::add(Subscription& subscription) {
  index_.add(&subscription, subscription.filters);
  reading_.insert(&subscription);
}

void FanOut::remove(Subscription& subscription) {
  index_.remove(&subscription);
  reading_.erase(&subscription);
}

void FanOut::go_live(Subscription& subscription, nostr::Seq after) {
  reading_.erase(&subscription);
  subscription.live = true;
  subscription.after = after;
  std::vector<net::FramePtr> frames;
  const auto time = now();
  for (const auto& live : std::exchange(subscription.waiting, {})) {
    if (live->seq <= after || is_over(*live, time)) continue;
    frames.push_back(text_frame(nostr::event_message(subscription.sub, live->event->json())));
  }
  if (!frames.empty()) subscription.subscriber->deliver(std::move(frames));
}

void FanOut::dispatch(const LiveEventPtr& live) {
  const auto time = now();
  if (is_over(*live, time)) return;
  // Clients choose their ids from few words: most frames serve several.
  HashMap<std::string_view, net::FramePtr> by_sub;
  std::vector<Subscription*> overflowed;
  const bool is_ephemeral = live->seq.value == 0;
  index_.each_match(*live->event, [&](Subscription& subscription) {
    if (!is_visible(*live, subscription.peer->viewer, time)) return;
    if (!subscription.live && !is_ephemeral) return keep(subscription, live, overflowed);
    if (!is_ephemeral && live->seq <= subscription.after) return;
    auto& frame = by_sub[subscription.sub.json()];
    if (!frame) frame = text_frame(nostr::event_message(subscription.sub, live->event->json()));
    auto& outgoing = outgoing_[subscription.subscriber.get()];
    outgoing.to = subscription.subscriber;
    outgoing.frames.push_back(frame);
    metrics_.live_delivered.add();
  });
  for (auto* subscription : overflowed) on_overflow_(*subscription);
}

void FanOut::keep(Subscription& subscription, const LiveEventPtr& live,
                  std::vector<Subscription*>& overflowed) {
  subscription.waiting.push_back(live);
  if (subscription.waiting.size() > waiting_max_) overflowed.push_back(&subscription);
}

void FanOut::withdraw(const nostr::EventId& id) {
  for (auto* subscription : reading_) {
    std::erase_if(subscription->waiting, [&](const auto& live) { return live->event->id() == id; });
  }
}

void FanOut::flush() {
  for (auto& [subscriber, outgoing] : std::exchange(outgoing_, {}))
    outgoing.to->deliver(std::move(outgoing.frames));
}

}  // namespace todoke::relay
