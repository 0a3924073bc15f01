// The index: documents/s of its consumer behind a real log, beside a consumer that inserts the same posts
// without tokens; the rate of a rebuild; and how long searches take. On an embedded Postgres with fsync on.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>

#include "embedded_bench.hpp"
#include "index/index_consumer.hpp"
#include "index/search.hpp"
#include "outbox/runner.hpp"
#include "search_text/generate.hpp"

namespace todoke::bench {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr std::uint64_t kSeed = 7;
constexpr std::size_t kWritten = 5'000;  // posts of one statement
constexpr int kSearches = 20;            // of each kind

constexpr pg::Statement kWrite{
    "write",
    "WITH k AS (SELECT encode(sha256(i::text::bytea), 'hex') AS id, i, c FROM unnest($1::bigint[], "
    "$2::text[]) AS k (i, c)), "
    "e AS (INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_at, "
    "ingested_seq, "
    "source, topics) SELECT id, repeat('a', 64), 1, 1700000000 + i, '[[\"t\",\"kukuri:global\"]]', c, "
    "repeat('b', 128), "
    "now(), i, 'ws', '{kukuri:global}' FROM k) "
    "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
    "SELECT 'upsert', id, 'kukuri:global', 1, 1700000000 + i, now() FROM k ORDER BY i"};
constexpr pg::Statement kPlain{"plain",
                               "INSERT INTO plain SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[]) "
                               "ON CONFLICT DO NOTHING"};
constexpr pg::Statement kOffset{
    "offset",
    "SELECT last_seq >= (SELECT max(seq) FROM cn_relay.events_outbox) FROM cn_relay.consumer_offsets "
    "WHERE consumer = $1"};
constexpr pg::Statement kSizes{"sizes",
                               "SELECT pg_table_size('cn_search.post_search_documents')::float8, "
                               "pg_relation_size('cn_search.post_search_documents_tokens')::float8"};

// The posts themselves, without anything to search by.
class Plain final : public outbox::Consumer {
 public:
  [[nodiscard]] std::string_view name() const override { return "plain-v1"; }
  Task<void> apply(outbox::Work work) override {
    std::vector<std::string_view> ids;
    std::vector<std::int64_t> times;
    std::vector<std::string_view> contents;
    for (const auto& row : work.rows) {
      ids.emplace_back(row.event_id);
      times.push_back(row.created_at);
      contents.emplace_back(work.events.at(row.event_id).content);
    }
    pg::Params params(ids, times, contents);
    co_await work.connection.query(kPlain, std::move(params), work.deadline);
  }
  Task<void> rebuild(pg::Pool&, Progress) override { co_return; }
  Task<void> swap(pg::Connection&, Deadline) override { co_return; }
};

// Seconds of processor time so far. On a busy machine they tell more than the clock.
struct CpuTime {
  double client = 0;
  double server = 0;
};

struct ProcessStat {
  int parent = 0;
  double seconds = 0;
};

ProcessStat stat_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  std::string skipped;
  ProcessStat stat;
  fields >> skipped >> stat.parent;
  for (int i = 0; i < 9; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  stat.seconds = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return stat;
}

CpuTime cpu_time(const pg::Connection& connection) {
  CpuTime time;
  time.client = stat_of("self").seconds;
  const auto server = stat_of(std::to_string(connection.backend_pid())).parent;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto stat = stat_of(name);
    if (stat.parent == server) time.server += stat.seconds;
  }
  return time;
}

struct Rate {
  double each_second = 0;
  double client_us = 0;
  double server_us = 0;
};

Rate rate_since(Steady::time_point began, const CpuTime& before, const pg::Connection& connection,
                double count) {
  const double seconds = seconds_since(began);
  const auto now = cpu_time(connection);
  return {count / seconds, 1e6 * (now.client - before.client) / count,
          1e6 * (now.server - before.server) / count};
}

std::string text_of(const Rate& rate) {
  return fmt::format("{:>7.0f}/s, processor {:>4.0f} us of the client and {:>4.0f} of the server",
                     rate.each_second, rate.client_us, rate.server_us);
}

struct Node {
  Executor executor;
  SystemClock clock;
  metrics::Registry registry;
  outbox::LogSignal log;
  pg::Pool pool;
  pg::Listener listener;

  Node(Executor on, const pg::ConnectOptions& connect)
      : executor(std::move(on)),
        pool({.connect = connect, .connections_idle_min = 2}, clock, registry),
        listener(executor, {.connect = connect}, registry) {}
};

Task<void> write_posts(pg::Connection& connection, PostGenerator& generator, std::size_t posts,
                       std::size_t length, std::int64_t first) {
  for (std::size_t done = 0; done < posts; done += kWritten) {
    std::vector<std::int64_t> numbers;
    std::vector<std::string> contents;
    for (std::size_t i = 0; i < kWritten; ++i) {
      numbers.push_back(first + static_cast<std::int64_t>(done + i));
      contents.push_back(generator.next(length).text);
    }
    pg::Params params(numbers, contents);
    co_await connection.query(kWrite, std::move(params), soon());
  }
  co_await connection.execute_script("VACUUM ANALYZE cn_relay.events", soon());
  co_await connection.execute_script("CHECKPOINT", soon());
}

// Rows/s of a consumer that has `posts` rows before it.
Task<Rate> catch_up(Node& node, std::shared_ptr<outbox::Consumer> consumer, pg::Connection& connection,
                    std::size_t posts) {
  outbox::Runner runner(node.executor, consumer, {}, node.pool, node.listener, node.log, node.clock,
                        node.registry);
  co_await runner.start();
  Signal ended(node.executor);
  const auto before = cpu_time(connection);
  const auto began = Steady::now();
  spawn(node.executor, runner.run(), [&](const std::exception_ptr&) { ended.set(); });
  while (true) {
    pg::Params params(consumer->name());
    const auto done = co_await connection.query(kOffset, std::move(params), soon());
    if (done.one().get<bool>(0)) break;
    co_await sleep_for(5ms);
  }
  const auto rate = rate_since(began, before, connection, static_cast<double>(posts));
  runner.stop();
  co_await ended.wait();
  co_return rate;
}

Task<Rate> rebuild_rate(Node& node, const pg::Connection& connection, double documents) {
  index::IndexConsumer consumer;
  const outbox::Consumer::Progress nothing = [](pg::Connection&, std::int64_t, std::int64_t) -> Task<void> {
    co_return;
  };
  const auto before = cpu_time(connection);
  const auto began = Steady::now();
  co_await consumer.rebuild(node.pool, nothing);
  co_return rate_since(began, before, connection, documents);
}

Task<void> time_search(Node& node, std::string what, std::string text, std::string topic) {
  std::vector<double> times;
  std::size_t hits = 0;
  for (int i = 0; i < kSearches; ++i) {
    index::SearchQuery query;
    query.text = text;
    if (!topic.empty()) query.topics.emplace(1, topic);
    const auto began = Steady::now();
    const auto page = co_await index::search(node.pool, node.clock, query, soon());
    times.push_back(1000 * seconds_since(began));
    hits = page->hits.size();
  }
  std::sort(times.begin(), times.end());
  print(fmt::format("    {:<28} {:>4} hits   p50 {:>7.2f} ms   max {:>7.2f} ms\n", what, hits,
                    times[times.size() / 2], times.back()));
}

struct Case {
  Language language;
  std::size_t posts;
  std::size_t length;
};

Task<void> measure_case(Node& node, pg::Connection& connection, Case one, std::int64_t first) {
  PostGenerator generator(one.language, kSeed);
  co_await connection.execute_script(
      "DROP TABLE IF EXISTS plain; CREATE TABLE plain (id text PRIMARY KEY, created_at bigint, content text)",
      soon());
  co_await write_posts(connection, generator, one.posts, one.length, first);
  const auto plain = co_await catch_up(node, std::make_shared<Plain>(), connection, one.posts);
  const auto indexed =
      co_await catch_up(node, std::make_shared<index::IndexConsumer>(), connection, one.posts);
  const auto sizes = co_await connection.query(kSizes, {}, soon());
  const auto documents = static_cast<double>(first) + static_cast<double>(one.posts);
  print(fmt::format("{} posts of {} {}, {} of them\n", name_of(one.language), one.length,
                    one.language == Language::english ? "words" : "characters", one.posts));
  print(fmt::format("  plain insert {}\n", text_of(plain)));
  print(fmt::format("  index        {}   {:.2f}x\n", text_of(indexed),
                    indexed.each_second / plain.each_second));
  const auto rebuilt = co_await rebuild_rate(node, connection, documents);
  print(fmt::format("  rebuild      {}   {:.2f}x\n", text_of(rebuilt),
                    rebuilt.each_second / plain.each_second));
  print(fmt::format("  all documents so far: {:.0f} B of table and {:.0f} B of word index for one\n",
                    sizes.one().get<double>(0) / documents, sizes.one().get<double>(1) / documents));
  co_await connection.execute_script("ANALYZE cn_search.post_search_documents", soon());
  // English words go on when they are the last; a space ends them.
  const std::string end = one.language == Language::english ? " " : "";
  const auto frequent = generator.words().front() + end;
  const auto rare = generator.words()[generator.words().size() * 2 / 3] + end;
  const auto beginning = one.language == Language::english ? generator.words()[1'000].substr(0, 3) : "猫";
  const std::vector<std::array<std::string, 3>> searches{
      {"a rare word", rare, ""},
      {"a frequent word", frequent, ""},
      {"the beginning of words", beginning, ""},
      {"a rare word in a topic", rare, "kukuri:global"},
      {"a word in an empty topic", frequent, "kukuri:none"}};
  for (const auto& [what, text, topic] : searches) co_await time_search(node, what, text, topic);
}

Task<void> measure(embedded::Postgres& server) {
  const auto executor = co_await asio::this_coro::executor;
  const auto connection = co_await connect_migrated(server);
  pg::ConnectOptions connect;
  connect.url = server.connection_string();
  {
    Node node(executor, connect);
    const Case english{Language::english, 60'000, 30};
    const Case japanese{Language::japanese, 30'000, 100};
    co_await measure_case(node, *connection, english, 0);
    co_await measure_case(node, *connection, japanese, static_cast<std::int64_t>(english.posts));
    node.pool.close();
  }
}

}  // namespace
}  // namespace todoke::bench

int main() {
  return todoke::bench::run_on_embedded(todoke::bench::measure);
}
