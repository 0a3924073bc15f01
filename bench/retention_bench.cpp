// What retention takes of a relay's rates: events that one connection publishes and pages that clients read, alone and
// while retention moves, drops and purges old events beside them. Rate limits are off. Started by bench/retention.
//
//   retention_bench [SECONDS]   of each of the two phases
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

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

// Old events of two weeks: a third has to move because its topic is kept longer, a third goes with its week, and the
// others are a few days old and go one by one, because their topic has a shorter period.
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
         INSERT INTO cn_relay.event_topics (topic_id, event_id, pubkey, kind, created_at, ingested_at, ingested_seq)
           SELECT topic, id, lpad((i % 1000)::text, 64, '0'), 1, i, at, i FROM n;
         INSERT INTO cn_relay.event_tags (name, value, created_at, event_id, ingested_at) SELECT 'p', 'x', i, id, at FROM n;
         INSERT INTO cn_relay.event_dedupe (event_id) SELECT id FROM n;
         SELECT cn_relay.recount_usage())",
      events);
}

struct Rates {
  double events = 0;  // a second
  double pages = 0;
};

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
  Rates sums;
  int rounds = 0;
  for (const auto until = Steady::now() + time; Steady::now() < until; ++rounds) {
    CaseResult published;
    Run publish{options, url, events, published};
    ingest_1(publish);
    sums.events += figure_of(published, "ingest_1_events_per_s");
    CaseResult read;
    Run reading{options, url, events, read};
    req(reading);
    if (read.failure || read.figures.empty())
      throw std::runtime_error(read.failure.value_or("nothing was read"));
    sums.pages += read.figures.front().value;
  }
  return {sums.events / rounds, sums.pages / rounds};
}

std::string row(const std::string& what, double alone, double beside) {
  return fmt::format("{:<28}{:>10.0f}{:>10.0f}{:>10.2f}x\n", what, alone, beside, beside / alone);
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
  const auto alone = measure(url, events, seconds);
  test::ChildProcess retention(
      {test::todoke_binary(), "retention", "run", "--data_dir", node.data_dir().string()}, {});
  const auto beside = measure(url, events, seconds);
  const bool had_work = !retention.has_ended();
  if (had_work) retention.kill(SIGTERM);
  const auto end = retention.wait();
  std::fputs(fmt::format("rates over {} s each\n\n{:<28}{:>10}{:>10}{:>11}\n", seconds.count(), "", "alone",
                         "beside", "ratio")
                 .c_str(),
             stdout);
  std::fputs(row("events published, 1/s", alone.events, beside.events).c_str(), stdout);
  std::fputs(row("pages read, 1/s", alone.pages, beside.pages).c_str(), stdout);
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
