// Group commit: items come from any thread, wait in one queue, and are committed in batches by one loop,
// whatever has queued while the last commit was under way. So the rate is not bound by the disk's flushes.
//
//   offer ──▶ queue ──▶ batch ──commit──▶ told by the work
//     │         │         ├──the database refuses it──▶ halves ──▶ the one that is refused fails
//     │         │         └──other failures──▶ again, with backoff
//     │         └── patience is over, after a commit that failed ──▶ fails
//     └── the queue is full ──▶ fails
//
// Promise: every item is either told by commit() or given to fail(), once. An item is committed again after a
// commit that failed, also where its outcome is unknown: the work finds out by itself what is there already.
// An item whose patience is over fails alone; the rest of its batch goes on.
//
// Bounded: `queue_max` items wait. From `queue_high` on a caller is asked to pause, and told when half of
// that is left. Batches are bounded by the work.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/async.hpp"
#include "base/backoff.hpp"
#include "base/clock.hpp"
#include "base/halving.hpp"
#include "base/metrics.hpp"

namespace todoke {

struct GroupCommitOptions {
  std::size_t queue_max = 8'192;
  std::size_t queue_high = SIZE_MAX;  // none is asked to pause
  std::chrono::milliseconds retry_first{20};
  std::chrono::milliseconds retry_most{500};
  std::chrono::milliseconds idle_every{1'000};  // without items, for between_batches()
};

enum class CommitFailure {
  queue_full,  // the item was not queued
  refused,     // the database refuses this item
  overdue,     // its patience is over
};

template <class Item>
class GroupCommitter {
 public:
  using Items = std::vector<Item>;

  // What is committed, and how. Called on the executor, except where it says otherwise.
  class Work {
   public:
    virtual ~Work() = default;
    // Moves the next batch out of the queue's front. Called under the queue's lock.
    virtual Items next_batch(std::deque<Item>& queue) = 0;
    // One try: commits the batch, then tells each item what became of it. Throws when nothing was committed,
    // and when the outcome is unknown. Items that are told leave the batch before that, so that none is told
    // twice.
    virtual Task<void> commit(Items& batch) = 0;
    // Whether a failure is about an item and not about the database.
    [[nodiscard]] virtual bool refuses_data(const std::exception_ptr& failure) const = 0;
    // A commit failed and will be tried again. Must not throw.
    virtual Task<void> mend(std::exception_ptr failure, Items& batch) = 0;
    [[nodiscard]] virtual SteadyTime patience_ends(const Item& item) const = 0;
    // The item was not committed, or whether it was is unknown. Called by offer(), on its thread, when the
    // queue is full. `failure` is that of the last commit, if there was one.
    virtual void fail(Item& item, CommitFailure why, const std::exception_ptr& failure) = 0;
    // After every batch, and every `idle_every` without one. Must not throw.
    virtual Task<void> between_batches() { co_return; }
  };

  GroupCommitter(const Executor& executor, GroupCommitOptions options, Work& work, const Clock& clock,
                 metrics::Gauge& queued, metrics::Counter& retries)
      : options_(options),
        work_(work),
        clock_(clock),
        queued_gauge_(queued),
        retries_(retries),
        wake_(executor) {}

  // From anywhere. False: the caller should offer nothing more until `on_room` is called, from any thread and
  // once.
  bool offer(Item item, const std::function<void()>& on_room = {}) {
    std::unique_lock lock(mutex_);
    const bool has_room = queue_.size() < options_.queue_high;
    if (!has_room) waiting_for_room_.push_back(on_room);
    if (queue_.size() >= options_.queue_max) {
      lock.unlock();
      work_.fail(item, CommitFailure::queue_full, nullptr);
      return has_room;
    }
    const bool was_empty = queue_.empty();
    queue_.push_back(std::move(item));
    queued_gauge_.set(static_cast<double>(queue_.size()));
    lock.unlock();
    if (was_empty) wake_.set_from_anywhere();
    return has_room;
  }

  // At stop(): commits what is queued, then returns.
  Task<void> run() {
    for (;;) {
      auto batch = next_batch();
      if (!batch.empty()) {
        co_await commit(std::move(batch));
      } else if (stop_asked_) {
        break;
      } else {
        wake_.reset();
        co_await wake_.wait_for(options_.idle_every);
      }
      co_await work_.between_batches();
    }
  }

  // On the executor.
  void stop() {
    stop_asked_ = true;
    wake_.set();
  }

 private:
  Items next_batch() {
    Items batch;
    std::vector<std::function<void()>> room;
    {
      const std::lock_guard lock(mutex_);
      batch = work_.next_batch(queue_);
      queued_gauge_.set(static_cast<double>(queue_.size()));
      if (queue_.size() <= options_.queue_high / 2) room.swap(waiting_for_room_);
    }
    for (const auto& on_room : room) on_room();
    return batch;
  }

  Task<void> commit(Items batch) {
    Backoff backoff(options_.retry_first, options_.retry_most);
    co_await in_halves(
        std::move(batch), [this](Items& part) { return work_.commit(part); },
        [&](std::exception_ptr failure, Items& part) { return judge(std::move(failure), part, backoff); });
  }

  Task<AfterFailure> judge(std::exception_ptr failure, Items& part, Backoff& backoff) {
    const bool is_refused = work_.refuses_data(failure);
    if (is_refused && part.size() > 1) co_return AfterFailure::halve;
    retries_.add();
    if (is_refused) {
      for (auto& item : part) work_.fail(item, CommitFailure::refused, failure);
      co_return AfterFailure::drop;
    }
    co_await work_.mend(failure, part);
    fail_overdue(part, failure);
    if (part.empty()) co_return AfterFailure::drop;
    co_await sleep_for(backoff.next());
    co_return AfterFailure::again;
  }

  // An item that is queued and has waited as long would only wait for its own failure.
  void fail_overdue(Items& part, const std::exception_ptr& failure) {
    const auto now = clock_.steady();
    Items overdue;
    Items left;
    for (auto& item : part) (work_.patience_ends(item) <= now ? overdue : left).push_back(std::move(item));
    part = std::move(left);
    {
      const std::lock_guard lock(mutex_);
      while (!queue_.empty() && work_.patience_ends(queue_.front()) <= now) {
        overdue.push_back(std::move(queue_.front()));
        queue_.pop_front();
      }
      queued_gauge_.set(static_cast<double>(queue_.size()));
    }
    for (auto& item : overdue) work_.fail(item, CommitFailure::overdue, failure);
  }

  const GroupCommitOptions options_;
  Work& work_;
  const Clock& clock_;
  metrics::Gauge& queued_gauge_;
  metrics::Counter& retries_;
  Signal wake_;
  bool stop_asked_ = false;

  std::mutex mutex_;
  std::deque<Item> queue_;
  std::vector<std::function<void()>> waiting_for_room_;
};

}  // namespace todoke
