// Who is connected, what each connection has open, and the stored events for it.
//
// A subscription is registered for live delivery first (fan_out.hpp) and then reads its stored events
// together with the log's head. Reads stand in line (query_line.hpp), COUNTs in a line of their own. A REQ
// that memory answers (recent_cache.hpp) needs no place in line and is not held up by reads of the same
// connection.
//
// A reconciliation (NIP-77) reads its set in pieces, which stand in line as COUNTs do, and is answered on the
// reader's executor (subscriptions_sets.cpp).
//
// Bounded: subscriptions of a connection and their memory, that of the process, reads and counts under way,
// sets of a connection and the memory of all sets (a set that is being read may go beyond it by one piece),
// counts of a connection that wait, the time of a REQ or COUNT (`query_timeout`), windows of recent events
// that are being filled. What is remembered of clients that have gone is bounded by what they can have used
// of the database in a minute: hardly anything is forgotten at once.
//
// Lives on the hub's executor; the reader alone runs elsewhere, and is given nothing there that changes
// meanwhile.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/hash_table.hpp"
#include "relay/fan_out.hpp"
#include "relay/hub_options.hpp"
#include "relay/log_follower.hpp"
#include "relay/metrics.hpp"
#include "relay/reader.hpp"
#include "relay/recent_cache.hpp"
#include "relay/subscription.hpp"
#include "relay/topic_book.hpp"

namespace todoke::relay {

// What a client is told of a read that failed.
nostr::Reason reason_of(const std::exception_ptr& failure);

class Subscriptions {
 public:
  // Of the hub's other parts: where the log stands, and what memory holds of it.
  Subscriptions(Executor executor, Executor read_executor, const HubOptions& options, Reader& reader,
                TopicBook& topics, const LogFollower& log, RecentCache& cache, const Clock& clock,
                RelayMetrics& metrics);
  ~Subscriptions();
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  void open(const SubscriberPtr& subscriber, nostr::ReqMessage request);
  void count(const SubscriberPtr& subscriber, nostr::CountMessage request);
  void close(const Subscriber& subscriber, const std::string& sub);
  void authenticated(const SubscriberPtr& subscriber, const nostr::Pubkey& key) {
    peer_of(subscriber).viewer.keys.push_back(key);
  }
  // NIP-77. A message for what does not wait for one ends it.
  void open_set(const SubscriberPtr& subscriber, nostr::NegOpenMessage request);
  void compare(const SubscriberPtr& subscriber, nostr::NegMsgMessage message);
  void close_set(const Subscriber& subscriber, const std::string& sub);
  // Ends those whose clients have been silent for long.
  void drop_idle_sets();
  void page_done(const Subscriber& subscriber);
  void leave(const Subscriber& subscriber);
  // Tells the subscriber when everything that it asked has its answer.
  void drain(const SubscriberPtr& subscriber);
  // Closes what names a topic that is disabled now.
  void topics_changed();
  // Why filters that were let in before are to be answered no longer; nothing: they are.
  using Check = std::function<std::optional<nostr::Reason>(std::span<const nostr::Filter>)>;
  // Closes what is open and the check refuses.
  void recheck(const Subscriber& subscriber, const Check& check);
  // From anywhere. Subscriptions that are open stay, and reads under way have the time that they had.
  void set_limits(std::size_t subscriptions_max, std::chrono::milliseconds query_timeout,
                  std::size_t set_events_max) {
    subscriptions_max_ = subscriptions_max;
    query_timeout_ = query_timeout;
    set_events_max_ = set_events_max;
  }

  [[nodiscard]] FanOut& live() { return live_; }
  // Waits until no read is under way. They end by themselves, by their deadlines.
  Task<void> wait_for_reads();

 private:
  // So many are not worth looking for those that can be forgotten.
  static constexpr std::size_t kHouseholdsMin = 1'024;

  Peer& peer_of(const SubscriberPtr& subscriber);
  Peer* find_peer(const Subscriber& subscriber);
  HouseholdPtr household_of(const std::string& network);
  void forget_households();
  void end_counts(Peer& peer, std::string_view sub);
  [[nodiscard]] std::optional<nostr::Reason> refusal_of(const Peer& peer,
                                                        std::span<const nostr::Filter> filters,
                                                        std::size_t bytes) const;
  void recheck(Peer& peer, const Check& check);
  [[nodiscard]] bool names_disabled_topic(std::span<const nostr::Filter> filters) const;
  void hold(Peer& peer, std::size_t bytes);
  void release(Peer& peer, std::size_t bytes);
  void remove(Peer& peer, const std::string& sub);
  void close_for(Peer& peer, const std::string& sub, nostr::Reason reason);
  // A REQ or COUNT that is not let in.
  void refuse_new(Peer& peer, const std::string& sub, nostr::Reason reason);
  // Every REQ or COUNT that is answered with stored events or a number is counted here, …
  void count_answered(SteadyTime opened_at);
  // … and every one that was let in and can't be answered ends here. `peer` is null when nobody waits for it.
  void fail_query(Peer* peer, const std::string& sub, SteadyTime opened_at, nostr::Reason reason);
  void fail_as_too_slow(Subscription& subscription);

  // Stored events (subscriptions_read.cpp).
  ReadLine::Hooks read_hooks();
  CountLine::Hooks count_hooks();
  void begin_count(CountPtr job, CountLine::Duration left);
  void answer_with_nothing(Subscription& subscription);
  bool answer_from_memory(Subscription& subscription);
  void fill_windows(const Subscription& subscription);
  Task<void> fill_window(nostr::Filter window, std::uint64_t number);
  Task<void> read_stored(SubscriptionPtr subscription, HouseholdPtr household, Viewer viewer,
                         Deadline deadline);
  Task<void> read_count(CountPtr count, HouseholdPtr household, Viewer viewer, Deadline deadline);
  void finish_read(Subscription& subscription, ReadResult result);
  void finish_count(Peer& peer, const Count& count, std::uint64_t found);
  void run_task(Task<void> task);

  // Sets of ids (subscriptions_sets.cpp).
  void begin_piece(ReconciliationPtr job, CountLine::Duration left);
  Task<void> read_piece(ReconciliationPtr job, SubscriberPtr subscriber, HouseholdPtr household,
                        Deadline deadline);
  Task<void> answer_set(ReconciliationPtr job, SubscriberPtr subscriber);
  [[nodiscard]] std::size_t set_bytes_max() const;
  [[nodiscard]] std::optional<nostr::Reason> refusal_of_set(const Peer& peer, const nostr::Filter& filter);
  void fail_set(const ReconciliationPtr& job, nostr::Reason reason);
  void remove_set(const ReconciliationPtr& job);
  void show_sets();
  // Of those that drain. A read that ends may have let others go on.
  void tell_answered();

  Executor executor_;
  Executor read_executor_;
  const HubOptions& options_;
  std::atomic<std::size_t> subscriptions_max_{options_.subscriptions_max};
  std::atomic<std::chrono::milliseconds> query_timeout_{options_.query_timeout};
  std::atomic<std::size_t> set_events_max_{options_.set_events_max};
  Reader& reader_;
  TopicBook& topics_;
  const LogFollower& log_;
  RecentCache& cache_;
  const Clock& clock_;
  RelayMetrics& metrics_;
  FanOut live_;
  SetMemory set_memory_{metrics_.set_bytes};  // outlives the sets
  HashMap<const Subscriber*, std::unique_ptr<Peer>> peers_;
  // Also of clients that have gone and whose use of the database is not forgiven yet.
  HashMap<std::string, HouseholdPtr> households_;
  std::size_t households_checked_at_ = kHouseholdsMin;
  std::size_t filter_bytes_ = 0;
  HashSet<ReconciliationPtr> sets_;  // of all connections
  ReadLine reads_;
  CountLine counts_;
  HashMap<const Subscriber*, SubscriberPtr> draining_;  // and wait for answers; only while the process stops
  std::size_t fills_ = 0;                               // under way
  std::size_t tasks_ = 0;
  Signal idle_;
};

}  // namespace todoke::relay
