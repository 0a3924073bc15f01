// The consumer behind the real runner.
#include "outbox/runner.hpp"

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "index/rig.hpp"
#include "pg/listener.hpp"

namespace todoke::index {
namespace {

constexpr pg::Statement kWrite{
    "write",
    "WITH k AS (SELECT encode(sha256((i || 'runner')::bytea), 'hex') AS id, i "
    "FROM generate_series($1::bigint, $1::bigint + 49) i), "
    "e AS (INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, "
    "ingested_seq, source, "
    "topics) SELECT id, repeat('a', 64), 1, i, '[]', 'number ' || i, '', i, 'ws', '{a,b}' FROM k) "
    "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
    "SELECT 'upsert', id, t, 1, i, now() FROM k, unnest('{a,b}'::text[]) t ORDER BY i, t"};
constexpr pg::Statement kRetire{
    "retire",
    "WITH e AS (UPDATE cn_relay.events SET deleted_at = now() WHERE ingested_seq % 7 = 0 AND ingested_seq < "
    "$1 "
    "AND deleted_at IS NULL RETURNING event_id, ingested_at, created_at, topics) "
    "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at, reason) "
    "SELECT 'delete', event_id, t, 1, created_at, ingested_at, 'nip09' FROM e, unnest(topics) t"};
constexpr pg::Statement kCondition{
    "condition",
    "SELECT state, last_seq = (SELECT coalesce(max(seq), 0) FROM cn_relay.events_outbox) "
    "FROM cn_relay.consumer_offsets WHERE consumer = 'index-v1'"};

Task<void> write_more(pg::Connection& connection, std::int64_t& number) {
  pg::Params write(number);
  co_await connection.query(kWrite, std::move(write), soon());
  number += 50;
  pg::Params retire(number - 100);
  co_await connection.query(kRetire, std::move(retire), soon());
}

TEST_F(IndexTest, ARebuildBesideLiveConsumptionLosesAndInventsNothing) {
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    SystemClock clock;
    metrics::Registry registry;
    outbox::LogSignal log;
    pg::ListenerOptions options;
    options.connect.url = rig_.url();
    pg::Listener listener(executor, options, registry);
    const auto consumer = std::make_shared<IndexConsumer>();
    outbox::Runner runner(executor, consumer, {}, rig_.pool(), listener, log, clock, registry);
    co_await runner.start();
    Signal ended(executor);
    spawn(executor, runner.run(), [&](const std::exception_ptr&) { ended.set(); });

    const auto lease = co_await rig_.pool().acquire(soon());
    std::int64_t number = 0;
    for (int i = 0; i < 60; ++i) co_await write_more(*lease, number);
    co_await lease->execute_script("UPDATE cn_relay.consumer_offsets SET state = 'rebuilding'", soon());
    const auto deadline = soon();
    while (!deadline.passed()) {
      const auto row = co_await lease->query(kCondition, {}, soon());
      const bool live = row.one().get<std::string>(0) == "live";
      if (live && row.one().get<bool>(1)) break;
      if (!live) co_await write_more(*lease, number);
      log.moved();
    }
    runner.stop();
    co_await ended.wait();
  });
  constexpr const char* kVisible =
      "SELECT event_id FROM cn_search.post_search_documents WHERE deleted_at IS NULL";
  constexpr const char* kEffective = "SELECT event_id FROM cn_relay.effective_events";
  EXPECT_EQ(rig_.one("SELECT state FROM cn_relay.consumer_offsets"), "live");
  EXPECT_EQ(rig_.one(fmt::format("SELECT count(*) FROM ({} EXCEPT {}) x", kEffective, kVisible)), "0")
      << "lost";
  EXPECT_EQ(rig_.one(fmt::format("SELECT count(*) FROM ({} EXCEPT {}) x", kVisible, kEffective)), "0")
      << "invented";
  EXPECT_EQ(rig_.one("SELECT count(*) FROM cn_search.post_search_documents WHERE NOT topics @> '{a,b}'"),
            "0");
  EXPECT_EQ(rig_.one("SELECT count(*) FROM cn_relay.consumer_dead_letters"), "0");
}

}  // namespace
}  // namespace todoke::index
