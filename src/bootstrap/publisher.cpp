#include "bootstrap/publisher.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/attempt.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "bootstrap/bootstrap_sql.hpp"
#include "bootstrap/key_table.hpp"
#include "nostr/event_parse.hpp"
#include "pg/channels.hpp"

namespace todoke::bootstrap {
namespace {

using namespace std::chrono_literals;

// Clocks of life pass half of a week; anything else is announced.
constexpr std::chrono::milliseconds kLookEvery = 5min;
// The relay hears of a topic by the same NOTIFY, and has to take it before a service for it is signed.
constexpr std::chrono::milliseconds kSettle = 1s;
constexpr std::chrono::seconds kRoundMax(600);
constexpr std::chrono::seconds kStartMax(30);
constexpr std::chrono::seconds kPublishMax(20);

std::string_view outcome_of(const outbox::Published& published) {
  using Kind = outbox::Published::Kind;
  switch (published.kind) {
    case Kind::stored:
      return "stored";
    case Kind::duplicate:
      return "duplicate";
    case Kind::refused:
      return "refused";
    case Kind::not_now:
      return "not_now";
  }
  return "";
}

// Our own events, as the database has them.
std::vector<nostr::Event> events_of(const pg::Result& rows) {
  std::vector<nostr::Event> events;
  for (const auto& row : rows) {
    auto event = nostr::parse_event(row.get<std::string_view>("json"), {});
    if (!event) throw std::runtime_error("an event of the node can't be read");
    events.push_back(std::move(*event));
  }
  return events;
}

}  // namespace

Publisher::Publisher(const Executor& executor, PublisherParts parts)
    : PeriodicService(executor,
                      {.name = "bootstrap",
                       .failed = "what the node says of itself was not published; it is tried again",
                       .every = kLookEvery,
                       .begins_at_once = true},
                      parts.metrics),
      parts_(std::move(parts)),
      published_(parts_.metrics.counters(
          "todoke_bootstrap_published_total",
          "What the node signed about itself and gave to its relay, by what became of it.", {"outcome"})) {
  parts_.database.application_name = "todoke bootstrap";
}

Task<void> Publisher::start() {
  const auto deadline = Deadline::after(kStartMax);
  connection_ = co_await pg::Connection::connect(parts_.database, deadline);
  co_await take_keys(deadline);
  topics_subscription_ =
      parts_.listener.subscribe(pg::channels::kTopics, [this](const pg::Wake&) { wake_up(); });
  keys_subscription_ = parts_.listener.subscribe(pg::channels::kKeys, [this](const pg::Wake&) { wake_up(); });
}

Task<void> Publisher::run() {
  co_await PeriodicService::run();
  topics_subscription_ = {};
  keys_subscription_ = {};
  connection_.reset();
}

void Publisher::set_facts(NodeFacts facts) {
  if (facts == parts_.facts) return;
  parts_.facts = std::move(facts);
  wake_up();
}

Task<void> Publisher::take_keys(Deadline deadline) {
  auto keys = std::make_shared<const NodeKeys>(bootstrap::take_keys(parts_.key_file));
  const auto old = read_old_keys(parts_.key_file);
  co_await register_keys(*connection_, *keys, old ? &*old : nullptr, deadline);
  keys_.store(std::move(keys));
}

Task<bool> Publisher::is_leader(Deadline deadline) {
  if (!connection_ || !connection_->usable() || !connection_->still_connected()) {
    leads_ = false;
    connection_.reset();
    connection_ = co_await pg::Connection::connect(parts_.database, deadline);
  }
  if (leads_) co_return true;
  const auto locked = co_await connection_->query(sql::kTryBootstrapLock, {}, deadline);
  leads_ = locked.one().get<bool>(0);
  co_return leads_;
}

Task<void> Publisher::round(RoundCause cause) {
  if (cause == RoundCause::woken) co_await pause(kSettle);
  if (stop_asked()) co_return;
  const auto deadline = Deadline::after(kRoundMax);
  const bool leads = co_await is_leader(deadline);
  co_await take_keys(deadline);
  if (!leads) co_return;
  const auto keys = keys_.load();
  co_await publish_changes(*keys, deadline);
  co_await withdraw_old_keys(*keys, deadline);
}

Task<void> Publisher::publish_changes(const NodeKeys& keys, Deadline deadline) {
  const auto rows = co_await connection_->query(sql::kTakenTopics, {kTopicsMax + 1}, deadline);
  std::vector<std::string> topics;
  for (const auto& row : rows) topics.push_back(row.get<std::string>(0));
  if (topics.size() > kTopicsMax) {
    topics.pop_back();
    log::warning("bootstrap", "more topics than the node tells of: the last ones are left out",
                 {{"limit", kTopicsMax}});
  }
  const auto facts = parts_.facts;
  const auto in_effect =
      co_await connection_->query(sql::kOwnDocuments, {keys.node().pubkey().hex()}, deadline);
  const auto changed = changes(documents(facts, keys, topics), events_of(in_effect), facts.lifetime,
                               seconds_of(parts_.clock.now()));
  for (const auto& draft : changed.to_sign) {
    if (stop_asked()) co_return;
    co_await publish(draft, keys.node());
  }
  co_await withdraw(changed.to_withdraw, keys.node());
  if (changed.to_sign.empty() && has_noted_) co_return;
  co_await note_hints(keys, deadline);
}

Task<void> Publisher::withdraw(const std::vector<nostr::Event>& events, const nostr::SecretKey& key) {
  const auto now = seconds_of(parts_.clock.now());
  for (std::size_t first = 0; first < events.size() && !stop_asked(); first += kWithdrawnAtOnce) {
    const auto last = std::min<std::size_t>(first + kWithdrawnAtOnce, events.size());
    co_await publish(withdrawal({events.begin() + static_cast<std::ptrdiff_t>(first),
                                 events.begin() + static_cast<std::ptrdiff_t>(last)},
                                now),
                     key);
  }
}

Task<void> Publisher::note_hints(const NodeKeys& keys, Deadline deadline) {
  pg::Batch batch;
  batch.add(sql::kNoteHints, {keys.node().pubkey().hex()});
  batch.add(sql::kDropOldHints, {kHintsMax});
  co_await connection_->run(std::move(batch), deadline);
  has_noted_ = true;
}

// The secret before a rotation goes when nothing is left that it could withdraw.
Task<void> Publisher::withdraw_old_keys(const NodeKeys& keys, Deadline deadline) {
  const auto old = read_old_keys(parts_.key_file);
  if (!old || stop_asked()) co_return;
  const bool is_rotated = old->node().pubkey() != keys.node().pubkey();
  if (is_rotated) {
    for (const auto& named : old->all()) co_await withdraw_signed_by(named.key, deadline);
  }
  if (stop_asked()) co_return;
  forget_old_keys(parts_.key_file);
  if (is_rotated) log::info("bootstrap", "what the keys before the rotation had signed is withdrawn");
}

Task<void> Publisher::withdraw_signed_by(const nostr::SecretKey& key, Deadline deadline) {
  while (!stop_asked()) {
    pg::Params params(key.pubkey().hex(), kWithdrawnAtOnce);
    const auto rows = co_await connection_->query(sql::kSignedBy, std::move(params), deadline);
    if (rows.empty()) co_return;
    co_await withdraw(events_of(rows), key);
  }
}

Task<void> Publisher::publish(const nostr::EventDraft& draft, const nostr::SecretKey& key) {
  const auto event = nostr::sign_event(draft, key);
  const auto published = co_await parts_.events->publish(std::string(event.json()), outbox::From::node,
                                                         std::nullopt, Deadline::after(kPublishMax));
  published_.with({std::string(outcome_of(published))}).add();
  if (published.is_accepted()) co_return;
  throw std::runtime_error(fmt::format("the relay did not take kind {}: {}", draft.kind, published.message));
}

}  // namespace todoke::bootstrap
