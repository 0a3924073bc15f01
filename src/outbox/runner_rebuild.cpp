#include <utility>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "outbox/outbox_sql.hpp"
#include "outbox/runner.hpp"
#include "pg/transaction.hpp"

namespace todoke::outbox {
namespace {

constexpr std::chrono::seconds kRebuildStepMax(10);

}  // namespace

void Runner::start_rebuild(Held held) {
  rebuilding_ = true;
  spawn(executor_, rebuild(held), [this](const std::exception_ptr& failure) {
    if (failure) {
      log::error("consumer", "the rebuild failed, it will be tried again",
                 {{"consumer", consumer_->name()}, {"error", describe(failure)}});
      rebuild_again_at_ = clock_.steady() + rebuild_backoff_.next();
    } else {
      rebuild_backoff_.reset();
    }
    rebuilding_ = false;
    rebuild_ended_.set();
  });
}

// The new store holds what is in effect at some moment after `head` was read; what the log says after `head`
// is applied to it again, which does not change what is right already.
Task<void> Runner::rebuild(Held held) {
  const auto small = Deadline::after(kRebuildStepMax);
  Seq head{0};
  {
    const auto lease = co_await pool_.acquire(small);
    const auto rows = co_await lease->query(sql::kLogEnd, {}, small);
    head = {rows.one().get<std::int64_t>(0)};
    pg::Params params(consumer_->name(), held.epoch, std::int64_t{0});
    co_await lease->query(sql::kRebuildBegins, std::move(params), small);
  }
  const Consumer::Progress progress = [this, held](pg::Connection& connection, std::int64_t done,
                                                   std::int64_t total) {
    return note_progress(connection, held, done, total);
  };
  co_await consumer_->rebuild(pool_, progress);
  // A reader that locks the tables for a moment must not cost a rebuild that took hours.
  Backoff backoff(options_.retry_first, options_.retry_most);
  for (int tried = 1;; ++tried) {
    const auto ended = co_await attempt(end_rebuild(held, head));
    if (ended) break;
    if (is_a<Fenced>(ended.error()) || tried >= options_.tries_max || stop_asked_)
      std::rethrow_exception(ended.error());
    retries_.add();
    co_await sleep_for(backoff.next());
  }
  log::info("consumer", "rebuilt", {{"consumer", consumer_->name()}, {"seq", head.value}});
}

// Locks in the order of a batch, its tables first and then the offset: they can't deadlock.
Task<void> Runner::end_rebuild(Held held, Seq head) {
  const auto deadline = Deadline::after(options_.batch_max);
  const auto lease = co_await pool_.acquire(deadline);
  auto transaction = co_await pg::begin(*lease, deadline);
  co_await consumer_->swap(*lease, deadline);
  const pg::Params params(consumer_->name(), held.epoch, head.value);
  pg::Batch batch(pg::Batch::Mode::plain);
  batch.add(sql::kPassOver, params);
  batch.add(sql::kRebuildEnds, params);
  const auto ended = co_await lease->run(std::move(batch), deadline);
  if (ended[1].empty()) throw Fenced();
  co_await transaction.commit(deadline);
}

// Also where a rebuild ends that has become pointless.
Task<void> Runner::note_progress(pg::Connection& connection, Held held, std::int64_t done,
                                 std::int64_t total) {
  if (stop_asked_) throw std::runtime_error("the node stops; the rebuild begins again with its next start");
  const auto deadline = Deadline::after(kRebuildStepMax);
  pg::Params params(consumer_->name(), held.epoch, done, total);
  const auto noted = co_await connection.query(sql::kRebuildGoesOn, std::move(params), deadline);
  if (noted.empty()) throw Fenced();
}

}  // namespace todoke::outbox
