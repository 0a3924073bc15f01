// What the hub keeps for a connection. For hub.cpp and hub_log.cpp.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "relay/hub.hpp"

namespace todoke::relay {

struct Hub::Subscription {
  Subscription(Peer& owner, nostr::ReqMessage request, std::size_t size, SteadyTime now);

  Peer* peer;                     // null: closed
  std::atomic<bool> open = true;  // the same, for the read under way, which may run elsewhere
  SubscriberPtr subscriber;
  nostr::SubId sub;
  std::vector<nostr::Filter> filters;
  std::size_t bytes;  // of the filters
  SteadyTime opened_at;
  bool live = false;  // the stored events have been sent
  nostr::Seq after;   // those up to here were among them
  std::vector<LiveEventPtr> waiting;
};

struct Hub::Count {
  SubscriberPtr subscriber;
  nostr::CountMessage request;
  std::size_t bytes;  // of the filters
  SteadyTime opened_at;
};

struct Hub::Peer {
  SubscriberPtr subscriber;
  Viewer viewer;
  std::map<std::string, std::shared_ptr<Subscription>, std::less<>> subscriptions;
  std::size_t filter_bytes = 0;  // of the subscriptions and counts
  ReadLine::Customer reads;
  CountLine::Customer counts;
};

inline Hub::Subscription::Subscription(Peer& owner, nostr::ReqMessage request, std::size_t size,
                                       SteadyTime now)
    : peer(&owner),
      subscriber(owner.subscriber),
      sub(std::move(request.sub)),
      filters(std::move(request.filters)),
      bytes(size),
      opened_at(now) {}

}  // namespace todoke::relay
