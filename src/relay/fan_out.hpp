// Live delivery: finds the subscriptions that an event matches and sends it to those that may see it. An
// event that comes while a subscription still reads its stored events waits, and goes out after them if its
// seq is greater than that of the log's head which the read had seen. No gap, no duplicate.
//
// An event is framed once for all subscriptions of the same name. Frames gather until flush(), so that a
// connection gets those of a whole batch at once.
//
// Bounded: events that wait for a stored read (`waiting_max`); the subscription has overflowed then. Not
// thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "base/hash_table.hpp"
#include "relay/metrics.hpp"
#include "relay/subscription.hpp"
#include "relay/subscription_index.hpp"

namespace todoke::relay {

class FanOut {
 public:
  // `on_overflow` closes the subscription: too much has come while it was reading.
  FanOut(std::size_t waiting_max, const Clock& clock, RelayMetrics& metrics,
         std::function<void(Subscription&)> on_overflow);

  // From now on events wait for the subscription, until it goes live.
  void add(Subscription& subscription);
  void remove(Subscription& subscription);
  // Its stored events, those up to `after`, have been sent: sends what waits.
  void go_live(Subscription& subscription, nostr::Seq after);

  void dispatch(const LiveEventPtr& live);
  // The event has lost its effect: it waits for nobody any more.
  void withdraw(const nostr::EventId& id);
  void flush();

 private:
  [[nodiscard]] std::chrono::sys_seconds now() const;
  void keep(Subscription& subscription, const LiveEventPtr& live, std::vector<Subscription*>& overflowed);

  const std::size_t waiting_max_;
  const Clock& clock_;
  RelayMetrics& metrics_;
  const std::function<void(Subscription&)> on_overflow_;
  SubscriptionIndex<Subscription> index_;
  HashSet<Subscription*> reading_;
  struct Outgoing {
    SubscriberPtr to;
    std::vector<net::FramePtr> frames;
  };
  HashMap<const Subscriber*, Outgoing> outgoing_;
};

}  // namespace todoke::relay
