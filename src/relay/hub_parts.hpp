// What the hub keeps for a connection. For hub.cpp and hub_log.cpp.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "relay/hub.hpp"

namespace todoke::relay {

struct Hub::Subscription {
  Subscription(Peer& owner, nostr::ReqMessage request, SteadyTime now);

  Peer* peer;  // null: closed
  SubscriberPtr subscriber;
  nostr::SubId sub;
  std::vector<nostr::Filter> filters;
  SteadyTime opened_at;
  bool live = false;  // the stored events have been sent
  nostr::Seq after;   // those up to here were among them
  std::vector<LiveEventPtr> waiting;
};

struct Hub::Peer {
  SubscriberPtr subscriber;
  Viewer viewer;
  std::map<std::string, std::shared_ptr<Subscription>, std::less<>> subscriptions;
  std::deque<std::shared_ptr<Subscription>> wanted;  // stored reads that wait for their turn
  std::deque<nostr::CountMessage> counts_wanted;
  std::size_t reads = 0;
  std::size_t counts = 0;
};

inline Hub::Subscription::Subscription(Peer& owner, nostr::ReqMessage request, SteadyTime now)
    : peer(&owner),
      subscriber(owner.subscriber),
      sub(std::move(request.sub)),
      filters(std::move(request.filters)),
      opened_at(now) {}

}  // namespace todoke::relay
