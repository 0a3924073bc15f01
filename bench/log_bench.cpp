// The log: what its order costs, how soon a consumer gets a row, how fast it catches up. On an embedded
// Postgres with fsync on.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "embedded_bench.hpp"
#include "outbox/runner.hpp"
#include "pg/pool.hpp"

namespace todoke::bench {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kEach = 4s;
constexpr std::int64_t kBacklogRows = 1'000'000;

// created_at carries the moment of the append in microseconds.
constexpr pg::Statement kAppend{
    "append",
    "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
    "SELECT 'upsert', lpad(i::text, 64, '0'), 'kukuri:global', 1, $2, now() FROM generate_series(1, $1::int) "
    "i"};
constexpr pg::Statement kPage{
    "page",
    "SELECT seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key, "
    "reason FROM cn_relay.events_outbox WHERE seq > $1 ORDER BY seq LIMIT $2"};
constexpr pg::Statement kPartitions{"partitions",
                                    "SELECT cn_relay.ensure_partitions(now() + interval '1 month')"};

std::int64_t micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now().time_since_epoch()).count();
}

Task<void> append(pg::Connection& connection, std::int32_t rows) {
  pg::Batch batch;
  batch.add(kAppend, pg::Params(rows, micros()));
  co_await connection.run(std::move(batch), soon());
}

struct Writers {
  Clock::time_point until;
  std::int64_t rows = 0;
  int running = 0;
};

Task<void> write_for_a_while(std::string url, std::int32_t batch, Writers& writers) {
  pg::ConnectOptions options;
  options.url = url;
  const auto connection = co_await pg::Connection::connect(options, soon());
  while (Clock::now() < writers.until) {
    co_await append(*connection, batch);
    writers.rows += batch;
  }
}

Task<double> rate_of_writers(const Executor& executor, const std::string& url, std::int32_t batch) {
  constexpr int kWriters = 4;
  Writers writers{Clock::now() + kEach, 0, kWriters};
  Signal ended(executor);
  std::exception_ptr failure;
  for (int i = 0; i < kWriters; ++i) {
    spawn(executor, write_for_a_while(url, batch, writers), [&](const std::exception_ptr& error) {
      if (error) failure = error;
      if (--writers.running == 0) ended.set();
    });
  }
  co_await ended.wait();
  if (failure) std::rethrow_exception(failure);
  co_return static_cast<double>(writers.rows) / std::chrono::duration<double>(kEach).count();
}

// Takes rows and does nothing with them.
class Idle final : public outbox::Consumer {
 public:
  [[nodiscard]] std::string_view name() const override { return "bench-v1"; }
  [[nodiscard]] bool wants_events() const override { return false; }
  Task<void> apply(outbox::Work work) override {
    const auto now = micros();
    for (const auto& row : work.rows) {
      if (row.created_at > 0) ages.push_back(now - row.created_at);
    }
    rows += static_cast<std::int64_t>(work.rows.size());
    co_return;
  }
  Task<void> rebuild(pg::Pool&, Progress) override { co_return; }
  Task<void> swap(pg::Connection&, Deadline) override { co_return; }

  std::int64_t rows = 0;
  std::vector<std::int64_t> ages;  // microseconds
};

double percentile(std::vector<std::int64_t> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
  return static_cast<double>(values[at]) / 1000;
}

Task<void> append_at(pg::Connection& connection, outbox::LogSignal& log, int per_second) {
  constexpr auto kTick = 10ms;
  const auto rows = std::max(1, per_second / 100);
  const auto pause =
      per_second >= 100 ? std::chrono::microseconds(kTick) : std::chrono::microseconds(1s) / per_second;
  const auto until = Clock::now() + kEach;
  for (auto next = Clock::now(); next < until; next += pause) {
    if (next > Clock::now()) co_await sleep_for(next - Clock::now());
    co_await append(connection, rows);
    log.moved();
  }
}

Task<void> price_of_order(const Executor& executor, const std::string& url, pg::Connection& connection) {
  print("order: 4 writers, rows/s\n");
  for (const std::int32_t batch : {1, 16, 128}) {
    const double ordered = co_await rate_of_writers(executor, url, batch);
    std::string off = "ALTER TABLE cn_relay.events_outbox DISABLE TRIGGER commit_order";
    co_await connection.execute_script(off, soon());
    const double unordered = co_await rate_of_writers(executor, url, batch);
    std::string on = "ALTER TABLE cn_relay.events_outbox ENABLE TRIGGER commit_order";
    co_await connection.execute_script(on, soon());
    co_await connection.query(kPartitions, {}, soon());
    print(fmt::format("  batches of {:<4} with the lock {:>9.0f}   without {:>9.0f}   {:.2f}x\n", batch,
                      ordered, unordered, ordered / unordered));
  }
}

Task<void> latency(pg::Connection& connection, outbox::LogSignal& log, Idle& consumer) {
  print("append to consumer, ms\n");
  for (const int per_second : {100, 1'000, 5'000}) {
    consumer.ages.clear();
    co_await append_at(connection, log, per_second);
    co_await sleep_for(500ms);
    print(fmt::format("  at {:>5}/s   p50 {:>7.2f}   p99 {:>7.2f}\n", per_second,
                      percentile(consumer.ages, 0.5), percentile(consumer.ages, 0.99)));
  }
}

Task<void> fill(pg::Connection& connection) {
  constexpr std::int32_t kRows = 10'000;
  for (std::int64_t i = 0; i < kBacklogRows / kRows; ++i) {
    pg::Batch batch;
    batch.add(kAppend, pg::Params(kRows, std::int64_t{0}));
    co_await connection.run(std::move(batch), soon());
    if (i % 20 == 0) co_await connection.query(kPartitions, {}, soon());
  }
}

Task<double> plain_pages(pg::Connection& connection, std::int64_t after) {
  const auto began = Clock::now();
  std::int64_t rows = 0;
  for (;;) {
    pg::Params params(after, std::int64_t{5'000});
    const auto page = co_await connection.query(kPage, std::move(params), soon());
    if (page.empty()) break;
    after = page[page.size() - 1].get<std::int64_t>(0);
    rows += static_cast<std::int64_t>(page.size());
  }
  co_return static_cast<double>(rows) / seconds_since(began);
}

Task<void> measure(embedded::Postgres& server) {
  const auto executor = co_await asio::this_coro::executor;
  const auto url = server.connection_string();
  const auto connection = co_await connect_migrated(server);

  // What a quick machine appends between two looks at the partitions.
  std::string room =
      "DO $$ BEGIN FOR i IN 1..30 LOOP PERFORM setval('cn_relay.events_outbox_seq', i * 1000000); "
      "PERFORM cn_relay.ensure_partitions(now()); END LOOP; "
      "PERFORM setval('cn_relay.events_outbox_seq', 1, false); END $$";
  co_await connection->execute_script(room, soon());
  co_await price_of_order(executor, url, *connection);

  SystemClock clock;
  metrics::Registry registry;
  pg::PoolOptions pool_options;
  pool_options.connect.url = url;
  pg::Pool pool(pool_options, clock, registry);
  pg::ListenerOptions listener_options;
  listener_options.connect.url = url;
  pg::Listener listener(executor, listener_options, registry);
  outbox::LogSignal log;
  const auto consumer = std::make_shared<Idle>();
  std::string forward =
      "INSERT INTO cn_relay.consumer_offsets (consumer, last_seq) "
      "SELECT 'bench-v1', max(seq) FROM cn_relay.events_outbox";
  co_await connection->execute_script(forward, soon());
  {
    outbox::Runner runner(executor, consumer, {}, pool, listener, log, clock, registry);
    co_await runner.start();
    Signal ended(executor);
    spawn(executor, runner.run(), [&](const std::exception_ptr&) { ended.set(); });
    co_await latency(*connection, log, *consumer);

    std::string pause = "UPDATE cn_relay.consumer_offsets SET paused = true";
    co_await connection->execute_script(pause, soon());
    co_await fill(*connection);
    const auto target = consumer->rows + kBacklogRows;
    std::string go = "UPDATE cn_relay.consumer_offsets SET paused = false";
    co_await connection->execute_script(go, soon());
    const auto began = Clock::now();
    while (consumer->rows < target) co_await sleep_for(5ms);
    const double took = seconds_since(began);
    const double rate = static_cast<double>(kBacklogRows) / took;
    const double pages = co_await plain_pages(*connection, 0);
    print(
        fmt::format("catching up with {} rows\n  consumer {:.0f} rows/s   plain SELECT in pages {:.0f} "
                    "rows/s   {:.2f}x\n",
                    kBacklogRows, rate, pages, rate / pages));
    runner.stop();
    co_await ended.wait();
  }
  pool.close();
}

}  // namespace
}  // namespace todoke::bench

int main() {
  return todoke::bench::run_on_embedded(todoke::bench::measure);
}
