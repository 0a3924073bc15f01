// Subscriptions and live delivery. Follows the log: the rows that this relay's writer has appended come
// straight from it, those of other relays are fetched. Every event goes out in the order of seq, once to a
// subscription.
//
// A subscription is registered first and then reads its stored events together with the log's head; what
// comes meanwhile waits, and goes out after the stored ones if its seq is greater than that head. No gap, no
// duplicate. An event that is no longer in effect when it is about to be sent is left out.
//
// Everything but reading stored events happens on one executor; the methods that are marked so may be called
// from anywhere.
//
// Stored reads stand in line (query_line.hpp), COUNTs in a line of their own. A REQ that memory answers needs
// no place in line and is not held up by reads of the same connection.
//
// Bounded: subscriptions of a connection and their memory, that of the process, stored reads under way,
// counts under way, counts that wait of a connection, the time of a REQ or COUNT (`query_timeout`), events
// that wait for a stored read, batches of the writer that wait their turn. When those are too many they are
// let go, and their rows are fetched like those of other relays.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash_table.hpp"
#include "base/service.hpp"
#include "net/websocket.hpp"
#include "nostr/wire.hpp"
#include "outbox/log_signal.hpp"
#include "pg/connection.hpp"
#include "pg/listener.hpp"
#include "relay/known_ids.hpp"
#include "relay/metrics.hpp"
#include "relay/query_line.hpp"
#include "relay/reader.hpp"
#include "relay/recent_cache.hpp"
#include "relay/store.hpp"
#include "relay/subscription_index.hpp"
#include "relay/topic_book.hpp"

namespace todoke::relay {

// A connection, as the hub sees it. Called on the hub's executor; each passes on to the connection's own, in
// order.
class Subscriber {
 public:
  virtual ~Subscriber() = default;
  virtual void deliver(std::vector<net::FramePtr> frames) = 0;
  // Stored events and what ends them. The connection calls Hub::page_done when there is room for another
  // page.
  virtual void deliver_page(nostr::SubId sub, std::vector<LiveEventPtr> events, std::string eose) = 0;
};
using SubscriberPtr = std::shared_ptr<Subscriber>;

struct HubOptions {
  // For following the log: a connection of its own, so that slow queries don't hold live delivery back.
  pg::ConnectOptions connect;
  nostr::TopicPolicy policy = nostr::TopicPolicy::topics;
  std::size_t subscriptions_max = 50;  // of a connection
  // Filters of subscriptions and of COUNTs that wait, with their entries in the index. A list of 2,000
  // authors takes 0.45 MiB; eight of those are a client that follows many in several views.
  std::size_t filter_bytes_max = 4 * 1024 * 1024;           // of a connection
  std::size_t filter_bytes_in_all_max = 256 * 1024 * 1024;  // of the process
  std::size_t reads_max = 4;                                // of a connection, at once
  // A read holds up to 2 MiB of JSON and a piece of 1 MiB, about twice that as objects: 100 MiB for all.
  std::size_t reads_under_way_max = 16;
  std::size_t fills_under_way_max = 4;   // of windows of recent events, each twice such a read
  std::size_t counts_under_way_max = 4;  // of the process; others stand in line as reads do
  std::size_t counts_waiting_max = 50;   // of a connection
  std::size_t waiting_max = 5'000;       // events that wait for a stored read
  std::size_t batches_max = 256;         // of the writer, while the log is being followed
  std::chrono::milliseconds query_timeout{5'000};
  std::chrono::milliseconds poll_every{500};
  CacheLimits cache;
};

class Hub final : public Service {
 public:
  // The reader runs on `read_executor`, and is given nothing there that the hub changes meanwhile.
  Hub(const Executor& executor, Executor read_executor, HubOptions options, Reader& reader,
      pg::Listener& listener, TopicBook& topics, KnownIds& known, outbox::LogSignal& log, const Clock& clock,
      RelayMetrics& metrics);
  ~Hub() override;

  // From anywhere, for one subscriber in the order of the calls.
  void open(SubscriberPtr subscriber, nostr::ReqMessage request);
  void count(SubscriberPtr subscriber, nostr::CountMessage request);
  void close(SubscriberPtr subscriber, std::string sub);
  void authenticated(SubscriberPtr subscriber);
  void page_done(SubscriberPtr subscriber);
  void leave(SubscriberPtr subscriber);
  // Delivers an event that is not stored.
  void ephemeral(LiveEventPtr live);

  // On the hub's executor.
  void appended(const Appended& log, std::vector<LiveEventPtr> stored);
  void topics_changed();
  // The last row of the log that was delivered.
  [[nodiscard]] nostr::Seq head() const { return head_; }
  // Forgets what it remembers of stored events, and what it was told of and has not delivered: what of that
  // is still in the log is fetched again.
  void restored();
  // From anywhere. Subscriptions that are open stay, and reads under way have the time that they had.
  void set_limits(std::size_t subscriptions_max, std::chrono::milliseconds query_timeout) {
    subscriptions_max_ = subscriptions_max;
    query_timeout_ = query_timeout;
  }

  [[nodiscard]] std::string_view name() const override { return "live"; }
  Task<void> start() override;
  Task<void> run() override;
  void stop() override;

 private:
  struct Subscription;
  struct Peer;
  struct Count;
  using CountPtr = std::shared_ptr<Count>;
  using ReadLine = QueryLine<std::shared_ptr<Subscription>>;
  using CountLine = QueryLine<CountPtr>;
  struct Batch {
    Appended log;
    std::vector<LiveEventPtr> stored;
  };
  using Frames = HashMap<Subscriber*, std::vector<net::FramePtr>>;

  Peer& peer_of(const SubscriberPtr& subscriber);
  Peer* find_peer(const Subscriber& subscriber);
  void open_now(const SubscriberPtr& subscriber, nostr::ReqMessage request);
  void count_now(const SubscriberPtr& subscriber, nostr::CountMessage request);
  [[nodiscard]] std::optional<nostr::Reason> refusal_of(const Peer& peer,
                                                        std::span<const nostr::Filter> filters,
                                                        std::size_t bytes) const;
  [[nodiscard]] bool names_disabled_topic(std::span<const nostr::Filter> filters) const;
  void hold(Peer& peer, std::size_t bytes);
  void release(Peer& peer, std::size_t bytes);
  void go_live(Peer& peer, Subscription& subscription);
  ReadLine::Hooks read_hooks();
  CountLine::Hooks count_hooks();
  void run_task(Task<void> task);
  bool answer_from_memory(Subscription& subscription);
  void fill_cache(const Subscription& subscription);
  Task<void> fill_window(std::string topic, std::uint64_t number);
  Task<void> read_stored(std::shared_ptr<Subscription> subscription, Viewer viewer, Deadline deadline);
  Task<void> read_count(CountPtr count, Viewer viewer, Deadline deadline);
  void finish_read(Peer& peer, Subscription& subscription, ReadResult result);
  void finish_count(Peer& peer, const Count& count, std::uint64_t found);
  void remove(Peer& peer, const std::string& sub);
  // Every REQ or COUNT that is answered with stored events or a number ends here, …
  void count_answered(SteadyTime opened_at);
  // … and every one that was let in and can't be answered here. `peer` is null when nobody waits for it.
  void fail_query(Peer* peer, const std::string& sub, SteadyTime opened_at, nostr::Reason reason);
  // One that is not let in.
  void refuse_new(Peer& peer, const std::string& sub, nostr::Reason reason);
  void close_for(Peer& peer, const std::string& sub, nostr::Reason reason);

  // Drops the batches that wait; their rows are fetched like those of other relays.
  void let_go();
  void apply(const Batch& batch);
  void apply_gone(const Gone& gone);
  [[nodiscard]] bool is_gone_later(const nostr::EventId& id) const;
  void apply_stored(const LiveEventPtr& live, Frames& frames);
  void dispatch(const LiveEventPtr& live, Frames& frames);
  void flush(Frames frames);
  Task<void> catch_up();
  Task<void> follow(nostr::Seq until);
  Task<bool> follow_once(nostr::Seq until);
  void follow_row(const pg::Row& row, Frames& frames);
  Task<void> connect(Deadline deadline);
  Task<void> notify_others();

  Executor executor_;
  Executor read_executor_;
  HubOptions options_;
  std::atomic<std::size_t> subscriptions_max_{options_.subscriptions_max};
  std::atomic<std::chrono::milliseconds> query_timeout_{options_.query_timeout};
  Reader& reader_;
  pg::Listener& listener_;
  TopicBook& topics_;
  KnownIds& known_;
  outbox::LogSignal& log_;
  const Clock& clock_;
  RelayMetrics& metrics_;
  RecentCache cache_;
  SubscriptionIndex<Subscription> index_;
  HashMap<const Subscriber*, std::unique_ptr<Peer>> peers_;
  HashSet<Subscription*> reading_;
  std::size_t filter_bytes_ = 0;
  ReadLine reads_;
  CountLine counts_;
  std::size_t fills_ = 0;  // under way

  nostr::Seq head_;
  std::unique_ptr<pg::Connection> connection_;
  std::deque<Batch> batches_;
  bool let_go_ = false;  // batches whose rows have not been fetched yet
  std::uint64_t restores_ = 0;
  bool busy_ = false;    // a catch_up is under way: batches wait their turn
  bool told_ = true;     // others may have written
  nostr::Seq own_head_;  // the last row of this relay's writer
  nostr::Seq notified_;  // and how far others were told of them
  Signal wake_;
  std::size_t tasks_ = 0;
  Signal idle_;
  bool stop_asked_ = false;
  pg::Listener::Subscription subscription_;
};

}  // namespace todoke::relay
