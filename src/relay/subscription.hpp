// What a connection has open: for the parts of the hub (subscriptions.hpp, fan_out.hpp).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/metrics.hpp"
#include "nostr/wire.hpp"
#include "relay/query_line.hpp"
#include "relay/reader.hpp"
#include "relay/subscriber.hpp"

namespace todoke::relay {

struct Peer;

// All connections of one network.
struct Household {
  QueryLine<std::shared_ptr<struct Subscription>>::Client reads;
  QueryLine<std::variant<std::shared_ptr<struct Count>, std::shared_ptr<struct Reconciliation>>>::Client
      counts;
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

// Of all sets of ids that clients compare.
struct SetMemory {
  metrics::Gauge& gauge;
  std::size_t bytes = 0;
};

// NIP-77: a set of ids that a client compares with its own.
//
//   reading, piece by piece ──▶ answering ──▶ waiting ──▶ closed
//                                   ▲────────────┘
struct Reconciliation {
  Reconciliation(Peer& owner, nostr::NegOpenMessage request, SetRead read_of, SetMemory& all, SteadyTime now)
      : peer(&owner),
        sub(std::move(request.sub)),
        message(std::move(request.message)),
        read(std::move(read_of)),
        memory(all),
        used_at(now) {}
  ~Reconciliation() { hold(0); }
  Reconciliation(const Reconciliation&) = delete;
  Reconciliation& operator=(const Reconciliation&) = delete;

  // What its set takes now.
  void hold(std::size_t bytes) {
    memory.bytes += bytes - std::exchange(held, bytes);
    memory.gauge.set(static_cast<double>(memory.bytes));
  }

  Peer* peer;  // null: closed
  nostr::SubId sub;
  std::string message;  // of the client, to be answered
  SetRead read;
  ReadInterruptPtr interrupt;                // of the piece under way
  std::shared_ptr<const nostr::NegSet> set;  // null while it is being read
  bool waiting = false;                      // for the client's next message
  std::size_t held = 0;
  SetMemory& memory;
  SteadyTime used_at;
};
using ReconciliationPtr = std::shared_ptr<Reconciliation>;

using ReadLine = QueryLine<SubscriptionPtr>;
// What looks at more than it shows.
using CountJob = std::variant<CountPtr, ReconciliationPtr>;
using CountLine = QueryLine<CountJob>;

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
  std::map<std::string, ReconciliationPtr, std::less<>> reconciliations;
};

inline Subscription::Subscription(Peer& owner, nostr::ReqMessage request, std::size_t size, SteadyTime now)
    : peer(&owner),
      subscriber(owner.subscriber),
      sub(std::move(request.sub)),
      filters(std::move(request.filters)),
      bytes(size),
      opened_at(now) {}

}  // namespace todoke::relay
