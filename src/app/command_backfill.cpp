// Fills the node's topics with what another relay has of them.
//
//   a todoke relay   by the order of its log, from where the last filling ended, oldest first
//   knows NIP-77     by comparing, so that only what is missing comes
//   knows neither    by time, newest first: everything once, and from then on what is younger than the last
//                    filling that came to its end, with a day of margin
#include <algorithm>
#include <string>
#include <vector>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "app/backfill_sql.hpp"
#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/node_options.hpp"
#include "app/progress.hpp"
#include "app/reconciling.hpp"
#include "app/topic_ids.hpp"
#include "base/attempt.hpp"
#include "outbox/monitor.hpp"
#include "relay/capacity.hpp"

namespace todoke::app {
namespace {

// Of a REQ; relays cut it to what they give.
constexpr std::uint32_t kPageEvents = 2'000;
// What reaches a relay later than it was made.
constexpr std::int64_t kMarginSeconds = 86'400;
constexpr std::chrono::seconds kPressureEvery(1);
constexpr std::chrono::seconds kBackfillQueryMax(30);

struct BackfillRequest {
  std::string url;
  std::optional<std::string> topic;
  std::optional<nostr::SecretKey> key;
};

// How far the last filling came.
struct FillCursor {
  std::optional<std::int64_t> seq;
  std::optional<std::int64_t> since;
};

nostr::Filter filter_for(const std::string& topic) {
  nostr::Filter filter;
  filter.tags.push_back({'t', nostr::SortedSet<std::string>({topic})});
  return filter;
}

class Backfilling {
 public:
  Backfilling(pg::Connection& connection, StoreScope& store, RelayPeer& peer, const BackfillRequest& request,
              Executor executor)
      : connection_(connection),
        store_(store),
        peer_(peer),
        request_(request),
        intake_(store, executor),
        monitor_(executor, monitor_options(store.config, false), pressure_, store.pool, health_,
                 store.registry) {}

  Task<void> run(const std::vector<std::string>& topics) {
    for (const auto& topic : topics) {
      topic_ = topic;
      co_await refuse_pressure();
      co_await fill(topic);
      ++topics_done_;
    }
  }

  Task<void> wait_for_outcomes() { co_await intake_.wait_for_outcomes(); }
  void end() { progress_.end(); }
  [[nodiscard]] std::size_t topics_done() const { return topics_done_; }
  [[nodiscard]] const Intake& intake() const { return intake_; }

 private:
  Task<void> fill(const std::string& topic) {
    const auto cursor = co_await cursor_of(topic);
    const auto began_at = seconds_of(store_.clock.now()).time_since_epoch().count();
    // Only a todoke relay says where its log stands.
    auto probe = filter_for(topic);
    probe.limit = 0;
    const auto answer = co_await attempt(peer_.stored(probe));
    if (answer && answer->seq) {
      co_await by_seq(topic, cursor, *answer->seq);
      co_return;
    }
    if (!answer && !is_a<UserError>(answer.error())) std::rethrow_exception(answer.error());
    if (compares_) {
      const auto compared = co_await attempt(by_comparing(topic));
      if (compared) co_return;
      if (!is_a<NoNegentropy>(compared.error())) std::rethrow_exception(compared.error());
      compares_ = false;
    }
    co_await by_time(topic, cursor);
    co_await keep(topic, std::nullopt, began_at);
  }

  Task<void> by_seq(const std::string& topic, FillCursor cursor, std::int64_t head) {
    auto at = cursor.seq.value_or(0);
    // Its log is another one now.
    if (at > head) at = 0;
    auto filter = filter_for(topic);
    filter.limit = kPageEvents;
    for (bool more = true; more;) {
      co_await refuse_pressure();
      filter.seq_after = nostr::Seq{at};
      auto page = co_await peer_.stored(filter);
      if (!page.seq) throw UserError("the peer no longer says where its log stands: repeat it");
      more = page.more && *page.seq > at;
      co_await take(std::move(page.events));
      refuse_failures();
      at = *page.seq;
      co_await keep(topic, at, std::nullopt);
    }
  }

  Task<void> by_comparing(const std::string& topic) {
    ReconcilingOptions options;
    options.check = [this] { return refuse_pressure(); };
    options.show = [this](const std::string& what, std::uint64_t count) { show(what, count); };
    Reconciling reconciling(peer_, store_, intake_, std::move(options));
    co_await reconciling.run(filter_for(topic));
    refuse_failures();
  }

  Task<void> by_time(const std::string& topic, FillCursor cursor) {
    auto filter = filter_for(topic);
    filter.limit = kPageEvents;
    if (cursor.since) filter.since = *cursor.since - kMarginSeconds;
    for (bool more = true; more;) {
      co_await refuse_pressure();
      auto page = co_await peer_.stored(filter);
      std::optional<std::int64_t> oldest;
      for (const auto& json : page.events) {
        const auto event = nostr::parse_event(json, {});
        if (event) oldest = std::min(oldest.value_or(event->created_at()), event->created_at());
      }
      // The oldest second may have been cut: it comes again with the next page, and is passed over when that
      // has nothing else.
      const bool is_stuck = oldest && filter.until && *oldest >= *filter.until;
      more = oldest && (!is_stuck || page.events.size() > 1);
      if (more) filter.until = is_stuck ? *filter.until - 1 : *oldest;
      co_await take(std::move(page.events));
      refuse_failures();
    }
  }

  Task<void> take(std::vector<std::string> events) {
    for (auto& json : events) co_await intake_.store_event(std::move(json));
    co_await intake_.wait_for_outcomes();
    show("filling", 0);
  }

  void show(const std::string& what, std::uint64_t /*count*/) {
    if (!progress_.is_due()) return;
    progress_.show(fmt::format("{}: {}, {} stored", topic_, what, intake_.stored()), intake_.stored(),
                   std::nullopt);
  }

  void refuse_failures() const {
    if (intake_.failed() > 0) throw UserError("some events were not stored: repeat it");
  }

  // From the first step on the node takes no backfill.
  Task<void> refuse_pressure() {
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

  Task<FillCursor> cursor_of(const std::string& topic) {
    const auto rows = co_await connection_.query(sql::kBackfillCursor, {request_.url, topic},
                                                 Deadline::after(kBackfillQueryMax));
    FillCursor cursor;
    if (!rows.empty()) {
      cursor.seq = rows[0].get<std::optional<std::int64_t>>(0);
      cursor.since = rows[0].get<std::optional<std::int64_t>>(1);
    }
    co_return cursor;
  }

  Task<void> keep(const std::string& topic, std::optional<std::int64_t> seq,
                  std::optional<std::int64_t> since) {
    pg::Params params(request_.url, topic, seq, since);
    co_await connection_.query(sql::kKeepBackfillCursor, std::move(params),
                               Deadline::after(kBackfillQueryMax));
  }

  pg::Connection& connection_;
  StoreScope& store_;
  RelayPeer& peer_;
  const BackfillRequest& request_;
  Intake intake_;
  outbox::Pressure pressure_;
  HealthBoard health_;
  outbox::LogMonitor monitor_;
  Progress progress_;
  std::string topic_;
  bool compares_ = true;  // as far as is known
  std::size_t topics_done_ = 0;
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
  std::vector<std::string> topics;
  for (const auto& [id, topic] : set->enabled()) {
    if (topic.allow_backfill) topics.push_back(id);
  }
  std::sort(topics.begin(), topics.end());
  return topics;
}

Task<void> backfill_store(pg::Connection& connection, StoreScope& store, const BackfillRequest& request) {
  const auto topics = topics_to_fill(store, request);
  const Executor executor = co_await asio::this_coro::executor;
  RelayAddress address{request.url, request.url};
  const auto client = co_await RelayClient::connect(std::move(address), request.key);
  RelayPeer peer(*client);
  Backfilling filling(connection, store, peer, request, executor);
  const auto done = co_await attempt(filling.run(topics));
  const auto settled = co_await attempt(filling.wait_for_outcomes());
  filling.end();
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
