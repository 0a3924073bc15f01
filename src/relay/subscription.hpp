// What a connection has open: for the parts of the hub (subscriptions.hpp, fan_out.hpp).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nostr/wire.hpp"
#include "relay/query_line.hpp"
#include "relay/reader.hpp"
#include "relay/subscriber.hpp"

namespace todoke::relay {

struct Peer;

// All connections of one network.
struct Household {
  QueryLine<std::shared_ptr<struct Subscription>>::Client reads;
  QueryLine<std::shared_ptr<struct Count>>::Client counts;
  std::size_t connections = 0;
};
using HouseholdPtr = std::shared_ptr<Household>;

//   reading ──its stored events were sent──▶ live ──▶ closed
//      └─────────────────────────────────────────────────▲
struct Subscription {
  Subscription(Peer& owner, nostr::ReqMessage request, std::size_t size, SteadyTime now);

  Peer* peer;  // null: closed
  SubscriberPtr subscriber;
  nostr::SubId sub;
  std::vector<nostr::Filter> filters;
  std::size_t bytes;  // of the filters
  SteadyTime opened_at;
  bool live = false;
  nostr::Seq after;                   // while it is live: events up to here were among the stored ones
  std::vector<LiveEventPtr> waiting;  // while it is reading: those that came meanwhile
  ReadInterruptPtr read;              // the read under way
};
using SubscriptionPtr = std::shared_ptr<Subscription>;

struct Count {
  SubscriberPtr subscriber;
  nostr::CountMessage request;
  std::size_t bytes;  // of the filters
  SteadyTime opened_at;
  ReadInterruptPtr read = {};  // under way
};
using CountPtr = std::shared_ptr<Count>;

using ReadLine = QueryLine<SubscriptionPtr>;
using CountLine = QueryLine<CountPtr>;

struct Peer {
  Peer(SubscriberPtr s, HouseholdPtr h)
      : subscriber(std::move(s)),
        household(std::move(h)),
        reads(household->reads),
        counts(household->counts) {}

  SubscriberPtr subscriber;
  HouseholdPtr household;
  Viewer viewer;
  std::map<std::string, SubscriptionPtr, std::less<>> subscriptions;
  std::size_t filter_bytes = 0;  // of the subscriptions and counts
  ReadLine::Customer reads;
  CountLine::Customer counts;
  std::vector<CountPtr> counting;  // under way
};

inline Subscription::Subscription(Peer& owner, nostr::ReqMessage request, std::size_t size, SteadyTime now)
    : peer(&owner),
      subscriber(owner.subscriber),
      sub(std::move(request.sub)),
      filters(std::move(request.filters)),
      bytes(size),
      opened_at(now) {}

}  // namespace todoke::relay
