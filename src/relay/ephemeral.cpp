#include "relay/ephemeral.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "base/log.hpp"
#include "nostr/auth.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/expiry.hpp"
#include "pg/channels.hpp"
#include "relay/ephemeral_sql.hpp"
#include "relay/event_rows.hpp"

namespace todoke::relay {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kSentIdsMax = 16'384;
constexpr std::chrono::milliseconds kPollEvery = 1s;
constexpr std::chrono::milliseconds kEmptyEvery = 2s;
constexpr std::chrono::milliseconds kExchangeMax = 5s;
constexpr std::int64_t kRowsMax = 500;

}  // namespace

LiveEventPtr live_of(const Incoming& incoming) {
  return std::make_shared<const LiveEvent>(
      LiveEvent{incoming.event, nostr::Seq{0}, incoming.expires_at, incoming.non_public, {}});
}

EphemeralExchange::EphemeralExchange(const Executor& executor, pg::Pool& pool, pg::Listener& listener,
                                     const Clock& clock, RelayMetrics& metrics, Deliver deliver)
    : PeriodicService(executor,
                      {.name = "ephemeral", .failed = "no exchange with other relays", .every = kPollEvery},
                      metrics.registry),
      pool_(pool),
      listener_(listener),
      clock_(clock),
      metrics_(metrics),
      deliver_(std::move(deliver)),
      origin_(nostr::make_challenge()),
      sent_(kSentIdsMax),
      executor_(executor) {}

bool EphemeralExchange::send(LiveEventPtr live) {
  if (!sent_.add(live->event->id())) return false;
  deliver_(live);
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kWaitingMax) {
      metrics_.ephemeral_dropped.add();
      return true;
    }
    waiting_.push_back(std::move(live));
    if (waiting_.size() > 1) return true;
  }
  wake_up();
  return true;
}

Task<void> EphemeralExchange::start() {
  subscription_ = listener_.subscribe(pg::channels::kEphemeral, [this](const pg::Wake& wake) {
    asio::post(executor_, [this, repoll = wake.repoll] {
      // After a restart of the server the ids may begin anew.
      if (repoll) last_id_ = 0;
      told_ = true;
      wake_up();
    });
  });
  co_return;
}

Task<void> EphemeralExchange::run() {
  co_await PeriodicService::run();
  subscription_ = {};
}

Task<void> EphemeralExchange::round(RoundCause cause) {
  told_ = told_ || cause == RoundCause::time;
  const auto deadline = Deadline::after(kExchangeMax);
  const auto lease = co_await pool_.acquire(deadline);
  co_await write(*lease, deadline);
  if (std::exchange(told_, false)) co_await read(*lease, deadline);
  if (clock_.steady() < empty_at_) co_return;
  empty_at_ = clock_.steady() + kEmptyEvery;
  co_await lease->query(sql::kEmptyEphemeral, {}, deadline);
}

Task<void> EphemeralExchange::write(pg::Connection& connection, Deadline deadline) {
  std::vector<LiveEventPtr> events;
  {
    const std::lock_guard lock(mutex_);
    events.swap(waiting_);
  }
  if (events.empty()) co_return;
  std::vector<pg::ByteView> jsons;
  for (const auto& live : events) {
    const auto json = live->event->json();
    jsons.emplace_back(reinterpret_cast<const std::uint8_t*>(json.data()), json.size());
  }
  pg::Batch batch;
  batch.add(sql::kLockEphemeral);
  batch.add(sql::kSendEphemeral, {origin_, jsons});
  batch.add(sql::kNotifyEphemeral);
  co_await connection.run(std::move(batch), deadline);
}

Task<void> EphemeralExchange::read(pg::Connection& connection, Deadline deadline) {
  for (;;) {
    pg::Params params(last_id_, origin_, kRowsMax);
    const auto rows = co_await connection.query(sql::kReadEphemeral, std::move(params), deadline);
    for (const auto& row : rows) {
      last_id_ = row.get<std::int64_t>(0);
      deliver_foreign(row.get<pg::ByteView>(1));
    }
    if (rows.size() < static_cast<std::size_t>(kRowsMax)) co_return;
  }
}

void EphemeralExchange::deliver_foreign(pg::ByteView json) {
  auto event = nostr::parse_event({reinterpret_cast<const char*>(json.data()), json.size()}, no_limits());
  if (!event) {
    log::warning("ephemeral", "another relay has sent what is no event");
    return;
  }
  if (!sent_.add(event->id())) return;
  const auto expires_at = nostr::expiry_of(*event);
  const auto scope = nostr::scope_of(*event);
  if (!expires_at || !scope) return;
  deliver_(
      std::make_shared<const LiveEvent>(LiveEvent{std::make_shared<const nostr::Event>(std::move(*event)),
                                                  nostr::Seq{0},
                                                  *expires_at,
                                                  *scope == nostr::Scope::non_public,
                                                  {}}));
}

}  // namespace todoke::relay
