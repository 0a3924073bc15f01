#include "app/backfill_service.hpp"

#include <utility>

#include <fmt/format.h>

#include "app/backfill_sql.hpp"
#include "base/attempt.hpp"
#include "base/log.hpp"
#include "gossip/config.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kFillDatabaseMax(10);
constexpr std::string_view kBackfillLine = "backfill from relays";

Task<void> hang_up(std::shared_ptr<RelayClient> client) {
  co_await client->close();
}

}  // namespace

BackfillService::BackfillService(BackfillParts parts)
    : PeriodicService(parts.executor,
                      {.name = "backfill",
                       .failed = "the node's topics were not filled from other relays",
                       .every = parts.config.get(gossip::keys::kBackfillEvery),
                       .begins_at_once = true},
                      parts.metrics),
      clock_(parts.clock),
      executor_(parts.executor),
      pool_(parts.pool),
      listener_(parts.listener),
      database_(std::move(parts.database)),
      storage_(parts.storage),
      pressure_(parts.pressure),
      health_(parts.health),
      events_(parts.metrics.counters("todoke_backfill_events_total",
                                     "Events that the relays of gossip.backfill_from gave: new or known.",
                                     {"outcome"})),
      relays_(parts.metrics.counters(
          "todoke_backfill_relays_total",
          "Relays of gossip.backfill_from that were asked: to the end (done), or not (put_off).",
          {"outcome"})),
      config_(std::make_shared<const Config>(parts.config)) {}

void BackfillService::change(const Config& config) {
  const bool is_same =
      config.get(gossip::keys::kBackfillFrom) == config_.load()->get(gossip::keys::kBackfillFrom);
  config_.store(std::make_shared<const Config>(config));
  if (!is_same) wake_up();
}

void BackfillService::stop() {
  PeriodicService::stop();
  // A round that waits for an answer of that relay goes on, and ends. How the connection ends does not matter
  // then.
  if (auto client = client_.lock()) spawn(executor_, hang_up(std::move(client)), [](const auto&) {});
}

void BackfillService::tell(const std::string& what) {
  health_.report(std::string(kBackfillLine), false, {HealthState::up, what});
}

void BackfillService::put_off(std::size_t relays, const std::string& why) {
  relays_.with({"put_off"}).add(relays);
  tell(why);
}

Task<void> BackfillService::refuse() {
  if (stop_asked()) throw UserError("the node stops");
  if (pressure_.level() > 0) throw UserError("the node is pressed");
  if (storage_.is_full()) throw UserError("the database's disk is full");
  co_return;
}

Task<void> BackfillService::round(RoundCause /*cause*/) {
  const auto config = config_.load();
  auto urls = config->get(gossip::keys::kBackfillFrom);
  if (urls.empty()) {
    health_.forget(std::string(kBackfillLine));
    co_return;
  }
  if (const auto refused = co_await attempt(refuse()); !refused)
    co_return put_off(urls.size(), describe(refused.error()));
  const auto connection = co_await pg::Connection::connect(database_, Deadline::after(kFillDatabaseMax));
  const auto lock = co_await connection->query(sql::kTakeBackfillLock, {}, Deadline::after(kFillDatabaseMax));
  if (!lock.one().get<bool>(0)) co_return put_off(urls.size(), "another process of the database does it");
  metrics::Registry of_writer;
  StoreParts parts{*config, clock_, executor_, pool_, listener_, database_, of_writer, storage_};
  const auto work = [&](StoreScope& store) { return fill_from_all(*connection, store, std::move(urls)); };
  co_await with_store_on(std::move(parts), {.source = relay::Source::backfill}, work);
}

Task<void> BackfillService::fill_from_all(pg::Connection& connection, StoreScope& store,
                                          std::vector<std::string> urls) {
  for (auto& url : urls) {
    const auto filled = co_await attempt(fill_from(connection, store, url));
    if (stop_asked()) co_return;
    if (filled) {
      relays_.with({"done"}).add();
      continue;
    }
    const auto why = describe(filled.error());
    put_off(1, fmt::format("{}: {}", url, why));
    log::warning("backfill", "a relay was not asked to the end", {{"error", why}});
  }
}

Task<void> BackfillService::fill_from(pg::Connection& connection, StoreScope& store, std::string url) {
  co_await refuse();
  RelayAddress address{url, url};
  const std::shared_ptr<RelayClient> client = co_await RelayClient::connect(std::move(address), {});
  client_ = client;
  const NoticesKept kept(*client);
  RelayPeer peer(*client, [this](std::chrono::nanoseconds time) { return pause(time); });
  const auto topics = topics_to_backfill(*store.importing.topics());
  BackfillOptions options{.peer = url, .only_younger = true, .no_room = NoRoom::fail};
  options.check = [this] { return refuse(); };
  options.show = [&](const std::string& topic, const std::string& what, std::uint64_t stored) {
    tell(fmt::format("{}: {}: {}, {} stored", url, topic, what, stored));
  };
  Backfilling filling(connection, store, peer, std::move(options), executor_);
  const auto filled = co_await attempt(filling.run(topics));
  const auto settled = co_await attempt(filling.wait_for_outcomes());
  events_.with({"new"}).add(filling.intake().stored());
  events_.with({"known"}).add(filling.intake().known());
  tell(fmt::format("{}: {} of {} topics, {} stored the last time", url, filling.topics_done(), topics.size(),
                   filling.intake().stored()));
  if (!filled || !settled) std::rethrow_exception(filled ? settled.error() : filled.error());
  co_await client->close();
}

}  // namespace todoke::app
