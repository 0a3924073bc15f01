// `todoke backfill`: fills the node's topics from another relay (backfilling.hpp).
#include <string>
#include <vector>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "app/backfilling.hpp"
#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/node_options.hpp"
#include "app/progress.hpp"
#include "app/topic_ids.hpp"
#include "base/attempt.hpp"
#include "outbox/monitor.hpp"
#include "relay/capacity.hpp"

namespace todoke::app {
namespace {

constexpr std::chrono::seconds kPressureEvery(1);
constexpr std::chrono::seconds kBackfillQueryMax(30);

struct BackfillRequest {
  std::string url;
  std::optional<std::string> topic;
  std::optional<nostr::SecretKey> key;
};

// A command has nobody who measures the pressure for it.
class OwnPressure {
 public:
  OwnPressure(pg::Connection& connection, StoreScope& store, const Executor& executor)
      : connection_(connection),
        store_(store),
        monitor_(executor, monitor_options(store.config, false), pressure_, store.pool, health_,
                 store.registry) {}

  // From the first step on the node takes no backfill.
  Task<void> refuse() {
    const auto now = store_.clock.steady();
    if (looked_at_ && now - *looked_at_ < kPressureEvery) co_return;
    looked_at_ = now;
    co_await monitor_.start();
    const auto limits = relay::capacity_from(store_.config);
    if (limits.any()) {
      const auto use = co_await relay::database_use(connection_, Deadline::after(kBackfillQueryMax));
      pressure_.set(outbox::PressureInput::capacity,
                    outbox::next_capacity_pressure(pressure_.of(outbox::PressureInput::capacity),
                                                   relay::share_in_use(use, limits)));
    }
    if (pressure_.level() > 0) {
      throw UserError(fmt::format("the node is pressed (step {}: {}): repeat it later", pressure_.level(),
                                  pressure_.of(outbox::PressureInput::backlog) > 0
                                      ? "the consumers of its log are behind"
                                      : "it is nearly full"));
    }
  }

 private:
  pg::Connection& connection_;
  StoreScope& store_;
  outbox::Pressure pressure_;
  HealthBoard health_;
  outbox::LogMonitor monitor_;
  std::optional<SteadyTime> looked_at_;
};

// Those that take it.
std::vector<std::string> topics_to_fill(const StoreScope& store, const BackfillRequest& request) {
  const auto set = store.importing.topics();
  if (request.topic) {
    std::vector<std::string> topics;
    for (const auto& id : topic_ids(store.config, *request.topic)) topics.push_back(id.text());
    for (const auto& topic : topics) {
      const auto found = set->enabled().find(topic);
      if (found == set->enabled().end())
        throw UserError(fmt::format("{} is not enabled: `todoke topic enable`", topic));
      if (!found->second.allow_backfill)
        throw UserError(fmt::format("{}: its ingest_policy has allow_backfill = false", topic));
    }
    return topics;
  }
  return topics_to_backfill(*set);
}

Task<void> backfill_store(pg::Connection& connection, StoreScope& store, const BackfillRequest& request) {
  const auto topics = topics_to_fill(store, request);
  const Executor executor = co_await asio::this_coro::executor;
  RelayAddress address{request.url, request.url};
  const auto client = co_await RelayClient::connect(std::move(address), request.key);
  RelayPeer peer(*client);
  OwnPressure pressure(connection, store, executor);
  Progress progress;
  BackfillOptions options{.peer = request.url};
  options.check = [&pressure] { return pressure.refuse(); };
  options.show = [&progress](const std::string& topic, const std::string& what, std::uint64_t stored) {
    if (progress.is_due()) progress.show(fmt::format("{}: {}, {} stored", topic, what, stored), stored, {});
  };
  Backfilling filling(connection, store, peer, std::move(options), executor);
  const auto done = co_await attempt(filling.run(topics));
  const auto settled = co_await attempt(filling.wait_for_outcomes());
  progress.end();
  note(fmt::format("{} of {} topics filled: {}", filling.topics_done(), topics.size(),
                   filling.intake().summary()));
  if (!done || !settled) {
    note("stopped early: repeat it, it goes on from there");
    std::rethrow_exception(done ? settled.error() : done.error());
  }
  co_await client->close();
}

int run_backfill(const Arguments& arguments) {
  BackfillRequest request;
  const auto url = arguments.option("from");
  if (!url) throw UsageError("backfill: name the other relay: --from wss://…");
  request.url = *url;
  request.topic = arguments.option("topic");
  if (const auto path = arguments.option("auth-key-file")) request.key = read_key_file(*path);
  const auto base = command_config(arguments);
  with_made_database(base, [&](pg::Connection& connection) {
    return with_store(connection, base, {.source = relay::Source::backfill},
                      [&](StoreScope& store) { return backfill_store(connection, store, request); });
  });
  return 0;
}

}  // namespace

Command backfill_command() {
  return {
      .name = "backfill",
      .summary = "fill the node's topics from another relay",
      .synopsis = "--from URL [--topic TOPIC] [--auth-key-file FILE]",
      .details =
          "Asks the relay at URL for the events of every enabled topic whose ingest_policy allows backfill, "
          "or of TOPIC "
          "(an id or a name), and stores them as `todoke import` does, with the source `backfill`. A todoke "
          "relay is "
          "followed by the order of its log, from where the last filling ended; another one is compared with "
          "(NIP-77) "
          "where it knows that, and asked by time where it does not.\n\n"
          "Safe to interrupt and to repeat. Stops with exit code 1 when the node is pressed (todoke_pressure "
          "1 and more) "
          "or the peer refuses. Works beside a running node and without one.",
      .options = {{"from", "URL", "the other relay, ws:// or wss://"},
                  {"topic", "TOPIC", "this topic only"},
                  {"auth-key-file", "FILE", "log in (NIP-42) with the secret key in FILE, 64 hex digits"}},
      .run = run_backfill,
  };
}

}  // namespace todoke::app
