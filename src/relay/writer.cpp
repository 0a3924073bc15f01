#include "relay/writer.hpp"

#include <algorithm>
#include <utility>

#include "base/backoff.hpp"
#include "base/log.hpp"
#include "pg/error.hpp"
#include "relay/store_sql.hpp"

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
               DedupeCounts& duplicates, CommitListener& listener, outbox::LogSignal& log)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      duplicates_(duplicates),
      listener_(listener),
      log_(log),
      work_(executor) {
  options_.connect = writer_options(std::move(options_.connect));
}

Writer::~Writer() = default;

bool Writer::offer(Incoming incoming, const std::function<void()>& on_room) {
  std::unique_lock lock(mutex_);
  if (queue_.size() >= options_.queue_events_high) waiting_.push_back(on_room);
  if (queue_.size() >= options_.queue_events_max) {
    lock.unlock();
    incoming.on_outcome(Outcome::failed);
    return false;
  }
  incoming.queued_at = clock_.steady();
  const bool has_room = queue_.size() < options_.queue_events_high;
  const bool was_empty = queue_.empty();
  queue_.push_back(std::move(incoming));
  lock.unlock();
  if (was_empty) work_.set_from_anywhere();
  return has_room;
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
  const bool is_first = !since_;
  if (since_ == log.since) return;
  since_ = log.since;
  if (log.moved) {
    log::warning("writer", "the database was restored or promoted: the log goes on with later seqs",
                 {{"after", log.since.value}});
  }
  if (!is_first) listener_.restored();
}

Task<void> Writer::start() {
  co_await connect();
  co_await keep_house_now();
  started_ = true;
}

void Writer::stop() {
  stop_asked_ = true;
  work_.set();
}

Task<void> Writer::run() {
  for (;;) {
    auto batch = next_batch();
    if (batch.empty()) {
      if (stop_asked_) break;
      work_.reset();
      co_await work_.wait_for(kSweepEvery);
    } else {
      metrics_.batch_events.observe(static_cast<double>(batch.size()));
      metrics_.batch_rows.observe(static_cast<double>(rows_of(batch)));
      co_await commit(std::move(batch));
    }
    co_await keep_house();
  }
  flush_at_ = {};
  co_await keep_house();
  connection_.reset();
}

std::vector<Incoming> Writer::next_batch() {
  std::vector<Incoming> batch;
  std::vector<std::function<void()>> room;
  {
    const std::lock_guard lock(mutex_);
    batch = take_batch(queue_, options_.batch);
    metrics_.queued.set(static_cast<double>(queue_.size()));
    if (queue_.size() * 2 <= options_.queue_events_high) room.swap(waiting_);
  }
  for (const auto& on_room : room) on_room();
  log_.set_busy(batch.size() * kBusyShare >= options_.batch.events_max ||
                rows_of(batch) * kBusyShare >= options_.batch.rows_max);
  return batch;
}

Task<void> Writer::commit(std::vector<Incoming> batch) {
  std::vector<std::vector<Incoming>> parts;
  parts.push_back(std::move(batch));
  Backoff backoff(kRetryFirst, kRetryMost);
  while (!parts.empty()) {
    auto& part = parts.back();
    std::exception_ptr failure;
    StoredBatch stored;
    try {
      if (!connection_ || !connection_->usable()) co_await connect();
      const auto began = clock_.steady();
      stored = co_await store(*connection_, part, seen(), Deadline::after(options_.patience));
      metrics_.commit_seconds.observe(std::chrono::duration<double>(clock_.steady() - began).count());
    } catch (...) {
      failure = std::current_exception();
    }
    if (!failure) {
      tell(part, std::move(stored));
      parts.pop_back();
      continue;
    }
    if (pg::refuses_data(failure) && part.size() > 1) {
      const auto half = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
      std::vector<Incoming> second(std::make_move_iterator(half), std::make_move_iterator(part.end()));
      std::vector<Incoming> first(std::make_move_iterator(part.begin()), std::make_move_iterator(half));
      parts.back() = std::move(second);
      parts.push_back(std::move(first));
      continue;
    }
    if (co_await mend(failure, part)) {
      co_await sleep_for(backoff.next());
    } else {
      fail(part);
      parts.pop_back();
      if (!pg::refuses_data(failure)) fail_overdue();
    }
  }
}

// What has waited as long as a batch that failed would only wait for its own failure.
void Writer::fail_overdue() {
  std::vector<Incoming> overdue;
  {
    const std::lock_guard lock(mutex_);
    const auto oldest = clock_.steady() - options_.patience;
    while (!queue_.empty() && queue_.front().queued_at <= oldest) {
      overdue.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }
  fail(overdue);
}

Task<bool> Writer::mend(std::exception_ptr failure, const std::vector<Incoming>& batch) {
  metrics_.retries.add();
  const auto why = describe(failure);
  if (pg::refuses_data(failure)) {
    log::error("writer", "the database refuses an event", {{"error", why}});
    co_return false;
  }
  const auto waited = clock_.steady() - batch.front().queued_at;
  log::warning("writer", "a batch was not stored", {{"error", why}, {"events", batch.size()}});
  if (!pg::lacks_partition(failure)) co_return waited < options_.patience;
  try {
    co_await connection_->query(sql::kEnsurePartitions, {}, Deadline::after(kHouseMax));
  } catch (const std::exception& error) {
    log::error("writer", "partitions could not be made", {{"error", error.what()}});
  }
  co_return waited < options_.patience;
}

void Writer::tell(std::vector<Incoming>& batch, StoredBatch stored) {
  metrics_.lock_wait_seconds.observe(stored.log.lock_waited.count());
  follow_log(stored.log);
  listener_.lost_effect(stored.log.gone);
  std::vector<LiveEventPtr> live;
  live.reserve(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto& incoming = batch[i];
    if (stored.outcomes[i] == Outcome::stored) {
      live.push_back(
          std::make_shared<LiveEvent>(LiveEvent{incoming.event, stored.seqs[i], incoming.expires_at,
                                                incoming.non_public, std::move(incoming.topics)}));
    }
    incoming.on_outcome(stored.outcomes[i]);
  }
  listener_.appended(stored.log, std::move(live));
}

void Writer::fail(std::vector<Incoming>& batch) {
  for (auto& incoming : batch) incoming.on_outcome(Outcome::failed);
}

// Whatever fails here is tried again a little later; a batch notices a broken connection by itself.
Task<void> Writer::keep_house() {
  std::exception_ptr failure;
  try {
    co_await keep_house_now();
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) log::warning("writer", "housekeeping was put off", {{"error", describe(failure)}});
}

Task<void> Writer::keep_house_now() {
  const auto now = clock_.steady();
  const auto due = [now](SteadyTime& at, std::chrono::milliseconds every) {
    if (now < at) return false;
    at = now + every;
    return true;
  };
  const bool partitions = due(partitions_at_, kPartitionsEvery);
  const bool flush = due(flush_at_, kFlushEvery) || duplicates_.is_half_full();
  const bool sweep = due(sweep_at_, kSweepEvery);
  if (!partitions && !flush && !sweep) co_return;
  if (!connection_ || !connection_->usable()) co_await connect();
  const auto deadline = Deadline::after(kHouseMax);
  if (partitions) co_await connection_->query(sql::kEnsurePartitions, {}, deadline);
  if (flush) {
    const auto counted = duplicates_.take();
    if (!counted.ids.empty()) {
      std::exception_ptr failure;
      try {
        co_await connection_->query(sql::kAddDedupeHits, counted.params(), deadline);
      } catch (...) {
        failure = std::current_exception();
      }
      if (failure) {
        duplicates_.put_back(counted);
        std::rethrow_exception(failure);
      }
    }
  }
  if (!sweep) co_return;
  const auto rows = co_await connection_->query(sql::kDue, {since_.value_or(nostr::Seq{}).value}, deadline);
  const auto due_now = rows.one();
  if (due_now.get<bool>("check_log")) {
    const auto log = co_await check_log(*connection_, seen(), deadline);
    follow_log(log);
  }
  if (!due_now.get<bool>("sweep")) co_return;
  auto swept = co_await sweep_expired(*connection_, kSweepEventsMax, seen(), deadline);
  follow_log(swept);
  metrics_.expired.add(swept.gone.size());
  if (swept.gone.size() == static_cast<std::size_t>(kSweepEventsMax)) sweep_at_ = {};
  listener_.appended(swept, {});
}

}  // namespace todoke::relay
