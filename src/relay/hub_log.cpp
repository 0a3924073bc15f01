// The hub's way through the log.
#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "relay/event_rows.hpp"
#include "relay/hub_parts.hpp"
#include "relay/query_sql.hpp"
#include "relay/store_sql.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kLogReadMax(10);
constexpr std::int64_t kLogRowsMax = 500;
constexpr auto kNoEnd = nostr::Seq{std::numeric_limits<std::int64_t>::max()};

// A payload that is no number says nothing: look.
nostr::Seq seq_in(std::string_view payload) {
  nostr::Seq seq = kNoEnd;
  std::from_chars(payload.data(), payload.data() + payload.size(), seq.value);
  return seq;
}

}  // namespace

void Hub::appended(const Appended& log, std::vector<LiveEventPtr> stored) {
  batches_.push_back({log, std::move(stored)});
  wake_.set();
  if (batches_.size() > options_.batches_max) {
    metrics_.live_batches_let_go.add(batches_.size());
    let_go();
    return;
  }
  if (busy_ || log.head_before > head_) return;
  while (!batches_.empty() && batches_.front().log.head_before <= head_) {
    const auto batch = std::move(batches_.front());
    batches_.pop_front();
    apply(batch);
  }
}

void Hub::let_go() {
  if (!batches_.empty()) own_head_ = std::max(own_head_, batches_.back().log.head);
  batches_.clear();
  let_go_ = true;
  told_ = true;
}

void Hub::restored() {
  ++restores_;
  cache_.clear();
  let_go();
  wake_.set();
}

void Hub::apply(const Batch& batch) {
  for (const auto& gone : batch.log.gone) apply_gone(gone);
  Frames frames;
  const auto lag = std::chrono::duration<double>(clock_.steady() - batch.log.committed_at).count();
  for (const auto& live : batch.stored) {
    if (live->seq <= head_) continue;  // found in the log already
    apply_stored(live, frames);
    metrics_.live_lag_seconds.observe(lag);
  }
  head_ = std::max(head_, batch.log.head);
  own_head_ = std::max(own_head_, batch.log.head);
  log_.moved();
  metrics_.log_head.set(static_cast<double>(head_.value));
  flush(std::move(frames));
}

void Hub::apply_gone(const Gone& gone) {
  known_.forget(gone.id);
  cache_.remove(gone);
  for (auto* subscription : reading_) {
    std::erase_if(subscription->waiting, [&](const auto& live) { return live->event->id() == gone.id; });
  }
}

// Whether a batch that waits its turn ends the effect of the event.
bool Hub::is_gone_later(const nostr::EventId& id) const {
  return std::any_of(batches_.begin(), batches_.end(), [&](const Batch& batch) {
    const auto& gone = batch.log.gone;
    return std::any_of(gone.begin(), gone.end(), [&](const Gone& one) { return one.id == id; });
  });
}

void Hub::apply_stored(const LiveEventPtr& live, Frames& frames) {
  if (!let_go_ && !is_gone_later(live->event->id())) known_.add(live->event->id());
  cache_.add(live);
  dispatch(live, frames);
}

Task<void> Hub::start() {
  const auto deadline = Deadline::after(kLogReadMax);
  co_await connect(deadline);
  const auto row = co_await connection_->query(sql::kHead, {}, deadline);
  head_ = std::max(head_, nostr::Seq{row.one().get<std::int64_t>(0)});
  subscription_ = listener_.subscribe("cn_relay_outbox", [this](const pg::Wake& wake) {
    const auto seq = wake.repoll ? kNoEnd : seq_in(wake.payload);
    asio::post(executor_, [this, seq] {
      if (seq <= head_) return;
      told_ = true;
      wake_.set();
    });
  });
}

void Hub::stop() {
  stop_asked_ = true;
  wake_.set();
}

Task<void> Hub::run() {
  while (!stop_asked_) {
    const bool woken = co_await wake_.wait_for(options_.poll_every);
    wake_.reset();
    told_ = told_ || !woken;
    std::exception_ptr failure;
    busy_ = true;
    try {
      co_await catch_up();
    } catch (...) {
      failure = std::current_exception();
    }
    busy_ = false;
    if (!failure) {
      try {
        co_await notify_others();
      } catch (...) {
        failure = std::current_exception();
      }
    }
    if (failure) {
      log::warning("live", "the log was not followed, trying again", {{"error", describe(failure)}});
      co_await sleep_for(options_.poll_every);
      told_ = true;
    }
  }
  subscription_ = {};
  connection_.reset();
  idle_.reset();
  if (tasks_ > 0) co_await idle_.wait();
}

Task<void> Hub::catch_up() {
  for (;;) {
    while (!batches_.empty()) {
      if (const auto before = batches_.front().log.head_before; before > head_) {
        co_await follow(before);
        continue;  // the batches may have been let go meanwhile
      }
      const auto batch = std::move(batches_.front());
      batches_.pop_front();
      apply(batch);
    }
    if (!told_) co_return;
    told_ = false;
    co_await follow(kNoEnd);
    if (told_) continue;
    let_go_ = false;
    if (batches_.empty()) co_return;
  }
}

// Seqs of transactions that were rolled back are missing for ever: `until` is reached when nothing is left.
Task<void> Hub::follow(nostr::Seq until) {
  bool more = true;
  while (more) more = co_await follow_once(until);
  if (until != kNoEnd) head_ = std::max(head_, until);
}

Task<bool> Hub::follow_once(nostr::Seq until) {
  const auto deadline = Deadline::after(kLogReadMax);
  co_await connect(deadline);
  pg::Params params(head_.value, until.value, kLogRowsMax);
  const auto restores = restores_;
  const auto rows = co_await connection_->query(sql::kFollowLog, std::move(params), deadline);
  if (restores_ != restores) co_return true;  // rows of a log that is no more
  Frames frames;
  for (const auto& row : rows) {
    const nostr::Seq seq{row.get<std::int64_t>("seq")};
    if (seq <= head_) continue;
    follow_row(row, frames);
    head_ = seq;
  }
  metrics_.log_head.set(static_cast<double>(head_.value));
  flush(std::move(frames));
  co_return rows.size() == static_cast<std::size_t>(kLogRowsMax);
}

// Anybody may write to the log by SQL. A row that can't be understood is passed over: everything after it
// would wait for ever.
void Hub::follow_row(const pg::Row& row, Frames& frames) {
  const auto seq = row.get<std::int64_t>("seq");
  try {
    if (row.get<std::string_view>("op") == "delete") {
      apply_gone({nostr::EventId::from_hex(row.get<std::string_view>("event_id")).value(),
                  row.get<std::int64_t>("created_at")});
    } else if (row.get<std::optional<std::int64_t>>("ingested_seq") == seq) {
      apply_stored(read_event(row), frames);
      metrics_.live_lag_seconds.observe(row.get<double>("age"));
    }
  } catch (const std::exception& error) {
    metrics_.live_unreadable.add();
    log::error("live", "a row of the log can't be read and is not delivered",
               {{"seq", seq}, {"error", error.what()}});
  }
}

Task<void> Hub::connect(Deadline deadline) {
  if (connection_ && connection_->usable()) co_return;
  connection_.reset();
  connection_ = co_await pg::Connection::connect(options_.connect, deadline);
}

// After the commit, from another connection than the writer's, once for all that came meanwhile.
Task<void> Hub::notify_others() {
  if (notified_ >= own_head_) co_return;
  const auto head = own_head_;
  const auto deadline = Deadline::after(kLogReadMax);
  co_await connect(deadline);
  pg::Params params(std::to_string(head.value));
  co_await connection_->query(sql::kNotifyOutbox, std::move(params), deadline);
  notified_ = head;
}

}  // namespace todoke::relay
