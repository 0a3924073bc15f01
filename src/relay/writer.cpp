#include "relay/writer.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "pg/error.hpp"
#include "relay/gossip_door.hpp"
#include "relay/store_sql.hpp"
#include "relay/topics_sql.hpp"

namespace todoke::relay {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kConnectMax = 5s;
constexpr std::chrono::milliseconds kRetryFirst = 20ms;
constexpr std::chrono::milliseconds kRetryMost = 500ms;
constexpr std::chrono::milliseconds kSweepEvery = 1s;
constexpr std::chrono::milliseconds kFlushEvery = 5s;
constexpr std::chrono::milliseconds kPartitionsEvery = 10min;
constexpr std::chrono::milliseconds kHouseMax = 10s;
// How long what other relays and purges do to the counters of limited topics stays unseen. With half a year
// of weeks a reading takes 1 ms for 100 such topics and 6 ms for 1,000.
constexpr std::chrono::milliseconds kUseEvery = 5s;
// A batch of an eighth of the largest has gathered during one commit: a burst. With a half, one connection
// was taken for idle now and then and lost a fifth of its rate to the index (bench/relay, ingest-1).
constexpr std::size_t kBusyShare = 8;
constexpr std::int32_t kSweepEventsMax = 200;  // bounds how long the log's lock is held

std::size_t rows_of(const std::vector<Incoming>& batch) {
  std::size_t rows = 0;
  for (const auto& incoming : batch) rows += incoming.rows;
  return rows;
}

}  // namespace

Writer::Writer(const Executor& executor, WriterOptions options, const Clock& clock, RelayMetrics& metrics,
               DedupeCounts& duplicates, const TopicBook& topics, CommitListener& listener,
               outbox::LogSignal& log, pg::Storage& storage)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      duplicates_(duplicates),
      topics_(topics),
      listener_(listener),
      log_(log),
      storage_(storage),
      committer_(executor,
                 {.queue_max = options_.queue_events_max,
                  .queue_high = options_.queue_events_high,
                  .retry_first = kRetryFirst,
                  .retry_most = kRetryMost,
                  .idle_every = kSweepEvery},
                 *this, clock, metrics.queued, metrics.retries) {
  options_.connect = writer_options(std::move(options_.connect));
}

Writer::~Writer() = default;

bool Writer::offer(Incoming incoming, const std::function<void()>& on_room) {
  incoming.queued_at = clock_.steady();
  return committer_.offer(std::move(incoming), on_room);
}

Task<void> Writer::connect() {
  connection_.reset();
  const auto deadline = Deadline::after(kConnectMax);
  connection_ = co_await pg::Connection::connect(options_.connect, deadline);
  const auto log = co_await check_log(*connection_, seen(), deadline);
  follow_log(log);
  partitions_at_ = {};
}

void Writer::follow_log(const Appended& log) {
  head_ = log.head;
  listener_.locked(log);
}

Task<void> Writer::start() {
  co_await connect();
  co_await keep_house();
  started_ = true;
}

void Writer::stop() {
  committer_.stop();
}

Task<void> Writer::run() {
  co_await committer_.run();
  flush_at_ = {};
  co_await between_batches();
  connection_.reset();
}

Writer::Committer::Items Writer::next_batch(std::deque<Incoming>& queue) {
  auto batch = take_batch(queue, options_.batch);
  const auto rows = rows_of(batch);
  log_.set_busy(batch.size() * kBusyShare >= options_.batch.events_max ||
                rows * kBusyShare >= options_.batch.rows_max);
  if (batch.empty()) return batch;
  metrics_.batch_events.observe(static_cast<double>(batch.size()));
  metrics_.batch_rows.observe(static_cast<double>(rows));
  return batch;
}

Task<void> Writer::commit(Committer::Items& batch) {
  if (storage_.is_full()) {
    co_await tell_full(std::exchange(batch, {}), Outcome::storage_full);
    co_return;
  }
  if (!connection_ || !connection_->usable()) co_await connect();
  co_await tell_held(batch);
  if (batch.empty()) co_return;
  const auto topics = co_await keep_within_limits(batch);
  if (batch.empty()) co_return;
  const auto began = clock_.steady();
  const auto stored = co_await store(*connection_, batch, seen(), Deadline::after(options_.patience));
  metrics_.commit_seconds.observe(std::chrono::duration<double>(clock_.steady() - began).count());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (stored.outcomes[i] == Outcome::stored) gate_.add(batch[i], *topics);
  }
  tell(std::exchange(batch, {}), stored);
}

Task<std::shared_ptr<const TopicSet>> Writer::keep_within_limits(Committer::Items& batch) {
  auto topics = topics_.topics();
  const auto now = clock_.steady();
  const bool is_old = topics != gate_topics_ || now >= use_at_;
  if (topics->has_limits() && is_old) {
    const auto rows =
        co_await connection_->query(sql::kTopicUse, {topics->limited()}, Deadline::after(kHouseMax));
    HashMap<std::string, TopicUse> use;
    for (const auto& row : rows) {
      use.emplace(row.get<std::string>("topic_id"),
                  TopicUse{row.get<std::int64_t>("events"), row.get<std::int64_t>("bytes")});
    }
    gate_.set_use(std::move(use));
    gate_topics_ = topics;
    use_at_ = now + kUseEvery;
  }
  auto refused = gate_.keep_out(batch, *topics);
  if (!refused.empty()) co_await tell_full(std::move(refused), Outcome::full);
  co_return topics;
}

Task<void> Writer::tell_held(Committer::Items& batch) {
  Committer::Items held;
  Committer::Items taken;
  for (auto& incoming : batch) (incoming.held ? held : taken).push_back(std::move(incoming));
  batch = std::move(taken);
  if (!held.empty()) co_await tell_full(std::move(held), Outcome::full);
}

// What is stored already is no news to a full topic, node or disk. A database that can't be asked knows
// nothing.
Task<void> Writer::tell_full(Committer::Items refused, Outcome why) {
  std::vector<std::string> ids;
  ids.reserve(refused.size());
  for (const auto& incoming : refused) ids.push_back(incoming.event->id().hex());
  const auto known = co_await attempt(known_ids(std::move(ids)));
  HashSet<std::string> stored;
  if (known) {
    for (const auto& row : *known) stored.insert(row.get<std::string>(0));
  }
  for (std::size_t i = 0; i < refused.size(); ++i) {
    refused[i].on_outcome(stored.contains(refused[i].event->id().hex()) ? Outcome::duplicate : why);
  }
}

Task<pg::Result> Writer::known_ids(std::vector<std::string> ids) {
  if (!connection_ || !connection_->usable()) co_await connect();
  pg::Params params(ids);
  auto known = co_await connection_->query(sql::kKnownIds, std::move(params), Deadline::after(kHouseMax));
  co_return known;
}

bool Writer::refuses_data(const std::exception_ptr& failure) const {
  return pg::refuses_data(failure);
}

// What waits for a disk without room would wait in vain.
SteadyTime Writer::patience_ends(const Incoming& incoming) const {
  return storage_.is_full() ? SteadyTime::min() : incoming.queued_at + options_.patience;
}

Task<void> Writer::mend(std::exception_ptr failure, Committer::Items& batch) {
  use_at_ = {};  // nobody may know what of it was stored
  if (pg::found_disk_full(failure)) storage_.set_refused(true);
  log::warning("writer", "a batch was not stored", {{"error", describe(failure)}, {"events", batch.size()}});
  if (!pg::lacks_partition(failure)) co_return;
  const auto made =
      co_await attempt(connection_->query(sql::kEnsurePartitions, {}, Deadline::after(kHouseMax)));
  if (!made) log::error("writer", "partitions could not be made", {{"error", describe(made.error())}});
}

void Writer::fail(Incoming& incoming, CommitFailure why, const std::exception_ptr& failure) {
  if (why == CommitFailure::refused)
    log::error("writer", "the database refuses an event", {{"error", describe(failure)}});
  const bool is_full = why == CommitFailure::overdue && storage_.is_full();
  incoming.on_outcome(is_full ? Outcome::storage_full : Outcome::failed);
}

void Writer::tell(Committer::Items batch, const StoredBatch& stored) {
  metrics_.lock_wait_seconds.observe(stored.log.lock_waited.count());
  follow_log(stored.log);
  listener_.lost_effect(stored.log.gone);
  std::vector<LiveEventPtr> live;
  live.reserve(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto& incoming = batch[i];
    if (stored.outcomes[i] == Outcome::stored) {
      tell_gossip(options_.gossip, incoming);
      live.push_back(
          std::make_shared<LiveEvent>(LiveEvent{incoming.event, stored.seqs[i], incoming.expires_at,
                                                incoming.non_public, std::move(incoming.topics)}));
    }
    incoming.on_outcome(stored.outcomes[i]);
  }
  listener_.appended(stored.log, std::move(live));
}

// Whatever fails here is tried again a little later; a batch notices a broken connection by itself.
Task<void> Writer::between_batches() {
  const auto kept = co_await attempt(keep_house());
  if (!kept) log::warning("writer", "housekeeping was put off", {{"error", describe(kept.error())}});
}

Task<void> Writer::keep_house() {
  const auto now = clock_.steady();
  const auto is_due = [now](SteadyTime& at, std::chrono::milliseconds every) {
    if (now < at) return false;
    at = now + every;
    return true;
  };
  const bool makes_partitions = is_due(partitions_at_, kPartitionsEvery);
  const bool flushes = is_due(flush_at_, kFlushEvery) || duplicates_.is_half_full();
  const bool sweeps = is_due(sweep_at_, kSweepEvery);
  if (!makes_partitions && !flushes && !sweeps) co_return;
  if (!connection_ || !connection_->usable()) co_await connect();
  const auto deadline = Deadline::after(kHouseMax);
  if (makes_partitions) co_await connection_->query(sql::kEnsurePartitions, {}, deadline);
  if (flushes) co_await flush_duplicates(deadline);
  if (sweeps) co_await sweep(deadline);
}

Task<void> Writer::flush_duplicates(Deadline deadline) {
  const auto counted = duplicates_.take_counted();
  if (counted.ids.empty()) co_return;
  const auto added = co_await attempt(connection_->query(sql::kAddDedupeHits, counted.params(), deadline));
  if (added) co_return;
  duplicates_.put_back(counted);
  std::rethrow_exception(added.error());
}

Task<void> Writer::sweep(Deadline deadline) {
  const auto rows = co_await connection_->query(sql::kDue, {listener_.since().value}, deadline);
  const auto due = rows.one();
  if (due.get<bool>("check_log")) {
    const auto log = co_await check_log(*connection_, seen(), deadline);
    follow_log(log);
  }
  if (!due.get<bool>("sweep")) co_return;
  const auto swept = co_await sweep_expired(*connection_, kSweepEventsMax, seen(), deadline);
  follow_log(swept);
  metrics_.expired.add(swept.gone.size());
  if (swept.gone.size() == static_cast<std::size_t>(kSweepEventsMax)) sweep_at_ = {};
  listener_.appended(swept, {});
}

}  // namespace todoke::relay
