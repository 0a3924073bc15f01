#include "relay/hub.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/attempt.hpp"
#include "base/log.hpp"
#include "pg/channels.hpp"
#include "relay/event_rows.hpp"
#include "relay/query_sql.hpp"
#include "relay/store_sql.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kLogReadMax(10);
constexpr std::int64_t kLogRowsMax = 500;

// Retention purges in many small batches; the windows are not worth filling for each.
constexpr std::chrono::seconds kForgetEvery(2);

// A payload that is no number may mean any row.
nostr::Seq seq_in(std::string_view payload) {
  nostr::Seq seq = LogFollower::kNoEnd;
  std::from_chars(payload.data(), payload.data() + payload.size(), seq.value);
  return seq;
}

}  // namespace

Hub::Hub(const Executor& executor, Executor read_executor, HubOptions options, Reader& reader,
         pg::Listener& listener, TopicBook& topics, outbox::LogSignal& log, const Clock& clock,
         RelayMetrics& metrics)
    : PeriodicService(
          executor,
          {.name = "live", .failed = "the log was not followed, trying again", .every = options.poll_every},
          metrics.registry),
      executor_(executor),
      options_(std::move(options)),
      listener_(listener),
      log_(log),
      clock_(clock),
      metrics_(metrics),
      cache_(options_.cache, options_.policy),
      follower_(options_.batches_max),
      subscriptions_(executor, std::move(read_executor), options_, reader, topics, follower_, cache_, clock,
                     metrics) {}

Hub::~Hub() = default;

void Hub::open(SubscriberPtr subscriber, nostr::ReqMessage request) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), request = std::move(request)]() mutable {
    subscriptions_.open(subscriber, std::move(request));
  });
}

void Hub::when_taken(std::function<void()> call) {
  asio::post(executor_, std::move(call));
}

void Hub::count(SubscriberPtr subscriber, nostr::CountMessage request) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), request = std::move(request)]() mutable {
    subscriptions_.count(subscriber, std::move(request));
  });
}

void Hub::close(SubscriberPtr subscriber, std::string sub) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), sub = std::move(sub)] {
    subscriptions_.close(*subscriber, sub);
  });
}

void Hub::open_set(SubscriberPtr subscriber, nostr::NegOpenMessage request) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), request = std::move(request)]() mutable {
    subscriptions_.open_set(subscriber, std::move(request));
  });
}

void Hub::compare(SubscriberPtr subscriber, nostr::NegMsgMessage message) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), message = std::move(message)]() mutable {
    subscriptions_.compare(subscriber, std::move(message));
  });
}

void Hub::close_set(SubscriberPtr subscriber, std::string sub) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), sub = std::move(sub)] {
    subscriptions_.close_set(*subscriber, sub);
  });
}

void Hub::authenticated(SubscriberPtr subscriber, const nostr::Pubkey& key) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), key] {
    subscriptions_.authenticated(subscriber, key);
  });
}

void Hub::recheck(SubscriberPtr subscriber, Subscriptions::Check check) {
  asio::post(executor_, [this, subscriber = std::move(subscriber), check = std::move(check)] {
    subscriptions_.recheck(*subscriber, check);
  });
}

void Hub::page_done(SubscriberPtr subscriber) {
  asio::post(executor_,
             [this, subscriber = std::move(subscriber)] { subscriptions_.page_done(*subscriber); });
}

void Hub::leave(SubscriberPtr subscriber) {
  asio::post(executor_, [this, subscriber = std::move(subscriber)] { subscriptions_.leave(*subscriber); });
}

void Hub::drain(SubscriberPtr subscriber) {
  asio::post(executor_, [this, subscriber = std::move(subscriber)] { subscriptions_.drain(subscriber); });
}

void Hub::ephemeral(LiveEventPtr live) {
  asio::post(executor_, [this, live = std::move(live)] {
    subscriptions_.live().dispatch(live);
    subscriptions_.live().flush();
  });
}

void Hub::lost_effect(const std::vector<Gone>& gone) {
  for (const auto& event : gone) known_.forget(event.id);
}

void Hub::appended(const Appended& log, std::vector<LiveEventPtr> stored) {
  metrics_.live_batches_let_go.add(follower_.appended({log, std::move(stored)}));
  wake_up();
  apply_batches();
}

void Hub::restored() {
  known_.clear();
  cache_.clear();
  follower_.restored();
  wake_up();
}

void Hub::apply_batches() {
  while (const auto batch = follower_.next_batch()) apply(*batch);
}

void Hub::apply(const LogFollower::Batch& batch) {
  for (const auto& gone : batch.log.gone) apply_gone(gone);
  const auto lag = std::chrono::duration<double>(clock_.steady() - batch.log.committed_at).count();
  for (const auto& live : batch.stored) {
    if (live->seq <= follower_.head()) continue;  // found in the log already
    apply_stored(live);
    metrics_.live_lag_seconds.observe(lag);
  }
  follower_.applied(batch);
  log_.moved();
  delivered();
}

void Hub::delivered() {
  metrics_.log_head.set(static_cast<double>(follower_.head().value));
  subscriptions_.live().flush();
}

void Hub::apply_gone(const Gone& gone) {
  known_.forget(gone.id);
  cache_.remove(gone);
  subscriptions_.live().withdraw(gone.id);
}

// Which events were purged is not told, only how new the newest is: windows that hold older ones are filled
// anew where they are asked for. Known ids stay, because a purged event is still a duplicate.
void Hub::forget_purged() {
  const auto now = clock_.steady();
  if (purged_until_.value == 0 || now < forget_at_) return;
  forget_at_ = now + kForgetEvery;
  cache_.forget_up_to(std::exchange(purged_until_, {}));
}

void Hub::apply_stored(const LiveEventPtr& live) {
  if (!follower_.may_be_gone_later(live->event->id())) known_.add(live->event->id());
  cache_.add(live);
  subscriptions_.live().dispatch(live);
}

Task<void> Hub::start() {
  const auto deadline = Deadline::after(kLogReadMax);
  co_await connect(deadline);
  const auto row = co_await connection_->query(sql::kHead, {}, deadline);
  follower_.begin_at(nostr::Seq{row.one().get<std::int64_t>(0)});
  purged_subscription_ = listener_.subscribe(pg::channels::kPurged, [this](const pg::Wake& wake) {
    const auto until = wake.repoll ? LogFollower::kNoEnd : seq_in(wake.payload);
    asio::post(executor_, [this, until] {
      purged_until_ = std::max(purged_until_, until);
      wake_up();
    });
  });
  subscription_ = listener_.subscribe(pg::channels::kLog, [this](const pg::Wake& wake) {
    const auto seq = wake.repoll ? LogFollower::kNoEnd : seq_in(wake.payload);
    asio::post(executor_, [this, seq] {
      if (follower_.told(seq)) wake_up();
    });
  });
}

Task<void> Hub::run() {
  co_await PeriodicService::run();
  subscription_ = {};
  purged_subscription_ = {};
  connection_.reset();
  co_await subscriptions_.wait_for_reads();
}

Task<void> Hub::round(RoundCause cause) {
  if (cause == RoundCause::time) follower_.told();
  forget_purged();
  subscriptions_.drop_idle_sets();
  co_await catch_up();
  co_await notify_others();
}

Task<void> Hub::catch_up() {
  for (;;) {
    apply_batches();
    const auto fetch = follower_.next_fetch();
    if (!fetch) co_return;
    const auto fetched = co_await attempt(fetch_rows(*fetch));
    if (fetched) continue;
    follower_.fetch_failed();
    std::rethrow_exception(fetched.error());
  }
}

Task<void> Hub::fetch_rows(LogFollower::Fetch fetch) {
  const auto deadline = Deadline::after(kLogReadMax);
  co_await connect(deadline);
  pg::Params params(follower_.head().value, fetch.until.value, kLogRowsMax);
  const auto rows = co_await connection_->query(sql::kFollowLog, std::move(params), deadline);
  if (follower_.is_current(fetch)) {
    for (const auto& row : rows) {
      if (follower_.pass(nostr::Seq{row.get<std::int64_t>("seq")})) apply_row(row);
    }
    delivered();
  }
  follower_.fetched(fetch, rows.size() == static_cast<std::size_t>(kLogRowsMax));
}

// Anybody may write to the log by SQL. A row that can't be understood is passed over: everything after it
// would wait for ever.
void Hub::apply_row(const pg::Row& row) {
  const auto seq = row.get<std::int64_t>("seq");
  try {
    if (row.get<std::string_view>("op") == "delete") {
      apply_gone({nostr::EventId::from_hex(row.get<std::string_view>("event_id")).value(),
                  row.get<std::int64_t>("created_at")});
    } else if (row.get<std::optional<std::int64_t>>("ingested_seq") == seq) {
      apply_stored(read_event(row));
      metrics_.live_lag_seconds.observe(row.get<double>("age"));
    } else if (const auto first = row.get<std::optional<std::int64_t>>("ingested_seq")) {
      apply_link(row, seq - *first);
    }
  } catch (const std::exception& error) {
    metrics_.live_unreadable.add();
    log::error("live", "a row of the log can't be read and is not delivered",
               {{"seq", seq}, {"error", error.what()}});
  }
}

// The rows of the topics that an event was accepted for follow each other. Any other row is that of a topic
// that it was linked to later (link_events), whose window does not have it.
void Hub::apply_link(const pg::Row& row, std::int64_t distance) {
  const auto topic = row.get<std::string>("topic_id");
  const auto topics = row.get<std::vector<std::string>>("topics");
  const bool is_at_its_place = distance < static_cast<std::int64_t>(topics.size()) &&
                               topics[static_cast<std::size_t>(distance)] == topic;
  if (!is_at_its_place) cache_.forget_topic(topic);
}

Task<void> Hub::connect(Deadline deadline) {
  if (connection_ && connection_->usable()) co_return;
  connection_.reset();
  connection_ = co_await pg::Connection::connect(options_.connect, deadline);
}

// After the commit, from another connection than the writer's, once for all that came meanwhile.
Task<void> Hub::notify_others() {
  const auto head = follower_.untold();
  if (!head) co_return;
  const auto deadline = Deadline::after(kLogReadMax);
  co_await connect(deadline);
  pg::Params params(std::to_string(head->value));
  co_await connection_->query(sql::kNotifyOutbox, std::move(params), deadline);
  follower_.others_told(*head);
}

}  // namespace todoke::relay
