// What retention takes of a relay's rates: events that one connection publishes and pages that clients read,
// alone and while retention moves, drops and purges old events beside them. Rate limits are off. Started by
// bench/retention.
//
//   retention_bench [SECONDS]   of each of the two phases
//
// While the first phase lasts the bench holds the purge lock, so that the node's own retention, which looks
// every ten minutes, does not disturb it.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "harness/todoke_process.hpp"
#include "own_node.hpp"
#include "relay_load/cases.hpp"

namespace todoke::bench {
namespace {

using Steady = std::chrono::steady_clock;

// What a run gets through in a second, or less: it must not run out of work before the phase ends.
constexpr std::int64_t kOldPerSecond = 4'000;
constexpr std::size_t kEventsOfRound = 10'000;

// Old events of two weeks: a third has to move because its topic is kept longer, a third goes with its week,
// and the others are a few days old and go one by one, because their topic has a shorter period.
std::string fill(std::int64_t events) {
  return fmt::format(
      R"(INSERT INTO cn_relay.node_subscriptions (topic_id, ingest_policy) VALUES
           ('long', '{{"retention_days": 100}}'), ('short', '{{"retention_days": 2}}'), ('plain', '{{}}');
         SELECT cn_relay.ensure_week(now() - make_interval(days => d)) FROM unnest(ARRAY[4, 45, 52]) d;
         CREATE TEMP TABLE n AS SELECT i, lpad(to_hex(i * 2654435761), 64, '0') AS id, t.topic,
           now() - make_interval(days => CASE t.topic WHEN 'short' THEN 4 ELSE 45 + 7 * (i % 2) END::integer) AS at
           FROM generate_series(1, {}::bigint) i CROSS JOIN LATERAL (SELECT (ARRAY['long', 'short', 'plain'])[1 + i % 3] AS topic) t;
         INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_at, ingested_seq, source,
           topics) SELECT id, lpad((i % 1000)::text, 64, '0'), 1, i, '[["p","x"]]', repeat('x', 200), repeat('0', 128), at, i,
           'import', ARRAY[topic] FROM n;
         INSERT INTO cn_relay.topic_links (topic_no, event_id, short_id, short_author, kind, created_at, ingested_at, ingested_seq)
           SELECT cn_relay.topic_no(topic), decode(id, 'hex'), cn_relay.short_id(id),
             cn_relay.short_id(lpad((i % 1000)::text, 64, '0')), 1, i, at, i FROM n;
         INSERT INTO cn_relay.event_tags (name, value, created_at, event_id, ingested_at) SELECT 'p', 'x', i, id, at FROM n;
         INSERT INTO cn_relay.event_dedupe (event_id) SELECT id FROM n;
         SELECT cn_relay.recount_usage();
         ANALYZE cn_relay.events, cn_relay.topic_links, cn_relay.event_tags, cn_relay.event_dedupe)",
      events);
}

// Holds the purge lock. SIGINT cancels what psql waits for, so that the session ends, and the lock with it.
class PurgeLock {
 public:
  explicit PurgeLock(const std::filesystem::path& data_dir)
      : session_({test::todoke_binary(), "psql", "-X", "-c", "SELECT cn_relay.take_purge_lock(60000)", "-c",
                  "SELECT pg_sleep(86400)"},
                 {"TODOKE_DATA_DIR=" + data_dir.string()}) {
    session_.wait_for_output("(1 row)");
  }
  ~PurgeLock() {
    session_.kill(SIGINT);
    session_.wait();
  }
  PurgeLock(const PurgeLock&) = delete;
  PurgeLock& operator=(const PurgeLock&) = delete;

 private:
  test::ChildProcess session_;
};

// A second, of all rounds and of the slowest.
struct Rate {
  double mean = 0;
  double slowest = std::numeric_limits<double>::infinity();
  void add(double rate, int rounds) {
    mean += (rate - mean) / rounds;
    slowest = std::min(slowest, rate);
  }
};

// What is measured: events from one connection, the newest page of the topic, which memory often has, and
// that of an author, by 8 readers.
constexpr std::array<std::pair<const char*, const char*>, 3> kFigures{{
    {"ingest_1_events_per_s", "events published, 1/s"},
    {"req_topic_8_requests_per_s", "pages of the topic, 1/s"},
    {"req_author_8_requests_per_s", "pages of an author, 1/s"},
}};
using Rates = std::array<Rate, kFigures.size()>;

double figure_of(const CaseResult& result, const std::string& key) {
  if (result.failure) throw std::runtime_error(*result.failure);
  for (const auto& figure : result.figures) {
    if (figure.key == key) return figure.value;
  }
  throw std::runtime_error("no figure " + key);
}

// Rounds of publishing and reading, one after the other.
Rates measure(const std::string& url, EventMaker& events, std::chrono::seconds time) {
  Options options;
  options.events = kEventsOfRound;
  options.seconds = std::chrono::seconds(1);
  Rates rates;
  const auto until = Steady::now() + time;
  for (int round = 1; Steady::now() < until; ++round) {
    CaseResult result;
    Run run{options, url, events, result};
    ingest_1(run);
    req(run);
    for (std::size_t i = 0; i < rates.size(); ++i)
      rates.at(i).add(figure_of(result, kFigures.at(i).first), round);
  }
  return rates;
}

std::string row(const char* what, const Rate& alone, const Rate& beside) {
  return fmt::format("{:<28}{:>10.0f}{:>10.0f}{:>10.2f}x{:>16.0f}{:>10.0f}\n", what, alone.mean, beside.mean,
                     beside.mean / alone.mean, alone.slowest, beside.slowest);
}

void run(std::chrono::seconds seconds) {
  OwnNode node;
  node.sql(fill(kOldPerSecond * seconds.count()));
  const auto url = "ws://" + node.address() + "/relay";
  Options options;
  EventMaker events(options.topic, options.event_bytes);
  CaseResult warm;
  Run warming{options, url, events, warm};
  warm_up(warming);
  auto purge_lock = std::make_optional<PurgeLock>(node.data_dir());
  const auto alone = measure(url, events, seconds);
  purge_lock.reset();
  test::ChildProcess retention(
      {test::todoke_binary(), "retention", "run", "--data_dir", node.data_dir().string()}, {});
  const auto beside = measure(url, events, seconds);
  const bool had_work = !retention.has_ended();
  if (had_work) retention.kill(SIGTERM);
  const auto end = retention.wait();
  std::fputs(
      fmt::format(
          "rates over {} s each, and of the slowest round of each\n\n{:<28}{:>10}{:>10}{:>11}{:>16}{:>10}\n",
          seconds.count(), "", "alone", "beside", "ratio", "slowest: alone", "beside")
          .c_str(),
      stdout);
  for (std::size_t i = 0; i < kFigures.size(); ++i)
    std::fputs(row(kFigures.at(i).second, alone.at(i), beside.at(i)).c_str(), stdout);
  const auto last = end.err.find_last_of('\n', end.err.empty() ? 0 : end.err.size() - 2);
  std::fputs(
      fmt::format("\nretention meanwhile: {}{}\n", end.err.substr(last == std::string::npos ? 0 : last + 1),
                  had_work ? "" : "it was through before the end: the ratio is too good")
          .c_str(),
      stdout);
}

}  // namespace
}  // namespace todoke::bench

int main(int argc, char** argv) {
  constexpr int kSeconds = 20;
  try {
    const int seconds = argc > 1 ? std::atoi(argv[1]) : kSeconds;
    if (seconds < 1) throw std::runtime_error("SECONDS is a number from 1 up");
    todoke::bench::run(std::chrono::seconds(seconds));
    return 0;
  } catch (const std::exception& error) {
    std::fputs((std::string("bench/retention: ") + error.what() + "\n").c_str(), stderr);
    return 1;
  }
}
