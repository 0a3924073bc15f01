// The one writer of a relay: commits the events of all connections in batches (base/group_committer.hpp). An
// event's outcome is told after its commit, never before.
//
// Bounded: past `queue_events_high` waiting events readers are asked to pause (offer returns false and
// `on_room` tells when to go on); past `queue_events_max` events fail at once. An event that could not be
// stored within `patience` fails, and at once where the database has no room (pg/storage.hpp). What can't be
// taken now, for want of room or because the node holds it back, is looked for: what is there already is a
// duplicate all the same. An event that the database refuses fails alone. A batch is bounded by its events
// and by the rows that they make.
//
// On the same connection, between two batches, it keeps house: expired events go into the log, duplicates
// that were counted are written, partitions are made ahead of time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "base/group_committer.hpp"
#include "base/service.hpp"
#include "outbox/gossip_port.hpp"
#include "outbox/log_signal.hpp"
#include "pg/connection.hpp"
#include "pg/storage.hpp"
#include "relay/batch_plan.hpp"
#include "relay/commit_listener.hpp"
#include "relay/dedupe_counts.hpp"
#include "relay/incoming.hpp"
#include "relay/metrics.hpp"
#include "relay/store.hpp"
#include "relay/topic_book.hpp"
#include "relay/topic_gate.hpp"

namespace todoke::relay {

struct WriterOptions {
  pg::ConnectOptions connect;
  // The rows bound how long a batch holds the log's lock: 256 ordinary events make about 1,500.
  BatchLimits batch{.events_max = 256, .rows_max = 5'000};
  // Eight batches, some tenths of a second of work: with more in line, clients are not read.
  std::size_t queue_events_high = 2'048;
  // What those clients may have sent already, and a burst of new ones; then events are refused.
  std::size_t queue_events_max = 16'384;
  std::chrono::milliseconds patience{5'000};
  outbox::GossipOut* gossip = nullptr;  // told of what was stored; null: nobody
};

class Writer final : public Service, private GroupCommitter<Incoming>::Work {
 public:
  // `log` is told whether events come faster than they are committed, `storage` of a database without room.
  Writer(const Executor& executor, WriterOptions options, const Clock& clock, RelayMetrics& metrics,
         DedupeCounts& duplicates, const TopicBook& topics, CommitListener& listener, outbox::LogSignal& log,
         pg::Storage& storage);
  ~Writer() override;

  // Thread-safe. False: the event is taken, but the caller should stop reading until `on_room` is called
  // (from any thread, once).
  bool offer(Incoming incoming, const std::function<void()>& on_room);

  // Whether it has ever reached the database. From anywhere.
  [[nodiscard]] bool has_started() const { return started_; }

  [[nodiscard]] std::string_view name() const override { return "writer"; }
  Task<void> start() override;
  // At stop(): commits what is queued, then returns.
  Task<void> run() override;
  void stop() override;

 private:
  using Committer = GroupCommitter<Incoming>;

  Committer::Items next_batch(std::deque<Incoming>& queue) override;
  Task<void> commit(Committer::Items& batch) override;
  [[nodiscard]] bool refuses_data(const std::exception_ptr& failure) const override;
  Task<void> mend(std::exception_ptr failure, Committer::Items& batch) override;
  [[nodiscard]] SteadyTime patience_ends(const Incoming& incoming) const override;
  void fail(Incoming& incoming, CommitFailure why, const std::exception_ptr& failure) override;
  Task<void> between_batches() override;

  Task<void> connect();
  [[nodiscard]] nostr::Seq seen() const { return std::max(head_, listener_.head()); }
  // Every time the log was locked.
  void follow_log(const Appended& log);
  void tell(Committer::Items batch, const StoredBatch& stored);
  Task<void> tell_full(Committer::Items refused, Outcome why);
  Task<void> tell_held(Committer::Items& batch);
  Task<pg::Result> known_ids(std::vector<std::string> ids);
  // Tells those that have no topic with room left, and gives the limits that hold for the others.
  Task<std::shared_ptr<const TopicSet>> keep_within_limits(Committer::Items& batch);
  Task<void> keep_house();
  Task<void> flush_duplicates(Deadline deadline);
  Task<void> sweep(Deadline deadline);

  WriterOptions options_;
  const Clock& clock_;
  RelayMetrics& metrics_;
  DedupeCounts& duplicates_;
  const TopicBook& topics_;
  CommitListener& listener_;
  outbox::LogSignal& log_;
  pg::Storage& storage_;
  Committer committer_;
  std::atomic<bool> started_ = false;
  std::unique_ptr<pg::Connection> connection_;
  SteadyTime sweep_at_{};
  SteadyTime flush_at_{};
  SteadyTime partitions_at_{};
  TopicGate gate_;
  std::shared_ptr<const TopicSet> gate_topics_;  // what the gate was read for
  SteadyTime use_at_{};                          // when it is to be read again
  nostr::Seq head_;                              // of the last transaction
};

}  // namespace todoke::relay
