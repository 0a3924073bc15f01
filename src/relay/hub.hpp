// Follows the log and delivers what it says: to subscriptions (fan_out.hpp), to the memory of recent events,
// and to the set of known ids, which it owns. What goes out when is decided by log_follower.hpp; who is
// connected and what they have open stands in subscriptions.hpp. The hub is the door to all of them, and does
// what they need of the database.
//
// Everything happens on one executor; the methods that are marked so may be called from anywhere.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/periodic.hpp"
#include "outbox/log_signal.hpp"
#include "pg/connection.hpp"
#include "pg/listener.hpp"
#include "relay/commit_listener.hpp"
#include "relay/hub_options.hpp"
#include "relay/known_ids.hpp"
#include "relay/log_follower.hpp"
#include "relay/recent_cache.hpp"
#include "relay/subscriptions.hpp"

namespace todoke::relay {

class Hub final : public PeriodicService, public CommitListener {
 public:
  Hub(const Executor& executor, Executor read_executor, HubOptions options, Reader& reader,
      pg::Listener& listener, TopicBook& topics, outbox::LogSignal& log, const Clock& clock,
      RelayMetrics& metrics);
  ~Hub() override;

  // From anywhere, for one subscriber in the order of the calls.
  void open(SubscriberPtr subscriber, nostr::ReqMessage request);
  // Calls back, on the hub's executor, when it has taken what the caller asked before.
  void when_taken(std::function<void()> call);
  void count(SubscriberPtr subscriber, nostr::CountMessage request);
  void close(SubscriberPtr subscriber, std::string sub);
  void open_set(SubscriberPtr subscriber, nostr::NegOpenMessage request);
  void compare(SubscriberPtr subscriber, nostr::NegMsgMessage message);
  void close_set(SubscriberPtr subscriber, std::string sub);
  // The connection has proven a key; once for each.
  void authenticated(SubscriberPtr subscriber, const nostr::Pubkey& key);
  // Closes what the subscriber has open and the check refuses. From anywhere; the check is called on the
  // hub's executor.
  void recheck(SubscriberPtr subscriber, Subscriptions::Check check);
  void page_done(SubscriberPtr subscriber);
  void leave(SubscriberPtr subscriber);
  // The connection takes no more questions: tells it (Subscriber::all_answered) when all that it asked has
  // its answer.
  void drain(SubscriberPtr subscriber);
  // From anywhere. Delivers an event that is not stored.
  void ephemeral(LiveEventPtr live);
  // From anywhere.
  [[nodiscard]] const KnownIds& known() const { return known_; }
  void set_limits(std::size_t subscriptions_max, std::chrono::milliseconds query_timeout,
                  std::size_t set_events_max) {
    subscriptions_.set_limits(subscriptions_max, query_timeout, set_events_max);
  }

  void topics_changed() { subscriptions_.topics_changed(); }

  void lost_effect(const std::vector<Gone>& gone) override;
  void appended(const Appended& log, std::vector<LiveEventPtr> stored) override;
  void restored() override;
  [[nodiscard]] nostr::Seq head() const override { return follower_.head(); }

  Task<void> start() override;
  Task<void> run() override;

 private:
  void apply_batches();
  void apply(const LogFollower::Batch& batch);
  void apply_gone(const Gone& gone);
  void forget_purged();
  void apply_stored(const LiveEventPtr& live);
  void apply_row(const pg::Row& row);
  void apply_link(const pg::Row& row, std::int64_t distance);
  void delivered();
  Task<void> round(RoundCause cause) override;
  Task<void> catch_up();
  Task<void> fetch_rows(LogFollower::Fetch fetch);
  Task<void> notify_others();
  Task<void> connect(Deadline deadline);

  Executor executor_;
  const HubOptions options_;
  pg::Listener& listener_;
  outbox::LogSignal& log_;
  const Clock& clock_;
  RelayMetrics& metrics_;
  KnownIds known_;
  RecentCache cache_;
  LogFollower follower_;
  Subscriptions subscriptions_;
  std::unique_ptr<pg::Connection> connection_;
  pg::Listener::Subscription subscription_;
  pg::Listener::Subscription purged_subscription_;
  nostr::Seq purged_until_;  // since the cache was told; 0: nothing
  SteadyTime forget_at_{};   // not before
};

}  // namespace todoke::relay
