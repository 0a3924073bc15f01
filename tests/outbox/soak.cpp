#include "soak.hpp"

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/run_task.hpp"
#include "outbox/audit.hpp"

namespace todoke::test {
namespace {

constexpr std::uint64_t kSecondsDefault = 10;
constexpr std::chrono::seconds kCatchUpMax(120);
// Of the partition that the run begins in.
constexpr int kSeqsLeft = 1'500;

constexpr const char* kSoakSetUp = R"(
SET client_min_messages = warning;
CREATE TABLE IF NOT EXISTS effects (n bigserial, consumer text, seq bigint, op text, event_id text, topic_id text);
CREATE SCHEMA feed;
INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, updated_at) VALUES ('feed', 0, now());
SELECT setval('cn_relay.events_outbox_seq', {});
SELECT cn_relay.ensure_partitions(now());
)";

std::uint64_t setting(const char* name, std::uint64_t fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::strtoull(value, nullptr, 10);
}

std::string killer(const std::string& url) {
  return url + " application_name=killer";
}

}  // namespace

Soak::Soak(DatabasePtr database)
    : database_(std::move(database)),
      seed_(setting("TODOKE_LOG_SEED", std::random_device()())),
      seconds_(setting("TODOKE_LOG_SECONDS", kSecondsDefault)),
      link_(killer(database_->url())) {
  std::cout << fmt::format("[ seed     ] TODOKE_LOG_SEED={} for {} s\n", seed_, seconds_);
  if (!link_.run(fmt::format(kSoakSetUp, 1'000'000 - kSeqsLeft)))
    throw std::runtime_error("the set-up failed");
}

void Soak::run(const Harm& harm) {
  const auto& url = database_->url();
  for (const char* const name : {"records", "records", "counts", "small"}) {
    consumers_.push_back(std::make_unique<Kept>(std::vector<std::string>{CONSUMER_HOST, url, name}));
  }
  const auto example = std::string(TODOKE_DOCS) + "/examples/follow.sql";
  consumers_.push_back(std::make_unique<Kept>(std::vector<std::string>{"psql", url, "-X", "-f", example}));
  {
    const RelayRig relay(NodeRigOptions{.roles = {}, .flags = {}, .database = database_});
    write(relay.url(), harm);
  }
  await_end();
  int starts = 0;
  for (auto& each : consumers_) {
    each->end();
    starts += each->starts();
  }
  std::cout << fmt::format("[ started  ] {} processes of 5 consumers\n", starts);
}

void Soak::write(const std::string& relay_url, const Harm& harm) {
  const auto& url = database_->url();
  std::atomic<bool> stop = false;
  Threads writers;
  const Way ways[] = {Way::table, Way::table, Way::partition, Way::partition, Way::lock};
  for (int i = 0; i < 5; ++i) {
    writers.add([&, i] { write_by_sql(url, ways[i], i, random(static_cast<std::uint64_t>(i)), stop); });
  }
  for (std::uint64_t i = 5; i < 8; ++i) {
    writers.add([&, i] { write_through_relay(relay_url, random(i), stop); });
  }
  Random choices = random(100);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds_);
  while (std::chrono::steady_clock::now() < until) {
    link_.run(pause(choices, 200));
    if (harm) harm(choices);
  }
  stop = true;
}

void Soak::cut_connections(Random& random) {
  link_.run(
      fmt::format("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                  "AND application_name <> 'killer' ORDER BY random() LIMIT {}",
                  chance(random, 15) ? "ALL" : "1"));
}

void Soak::hurt_consumer(Random& random) {
  auto& one =
      *consumers_.at(static_cast<std::size_t>(pick(random, 0, static_cast<int>(consumers_.size()) - 1)));
  if (chance(random, 50)) {
    one.signal(SIGKILL);
    return;
  }
  one.signal(SIGSTOP);
  link_.run(pause(random, 1'000));
  one.signal(SIGCONT);
}

void Soak::await_end() {
  const auto until = std::chrono::steady_clock::now() + kCatchUpMax;
  const char* const behind =
      "SELECT format('%s is at %s of %s', consumer, last_seq, head) FROM cn_relay.consumer_offsets, "
      "(SELECT max(seq) AS head FROM cn_relay.events_outbox) h WHERE last_seq < head";
  std::optional<Rows> rows;
  do {
    rows = link_.run(behind);
    if (rows && rows->empty()) return;
    link_.run("SELECT pg_sleep(0.02)");
  } while (std::chrono::steady_clock::now() < until);
  ADD_FAILURE() << (rows ? testing::PrintToString(*rows) : std::string("no answer"));
}

std::vector<std::int64_t> Soak::seqs(const std::string& statement) {
  std::optional<Rows> rows;
  if (!await([&] { return (rows = link_.run(statement)).has_value(); }))
    throw std::runtime_error("no answer: " + statement);
  std::vector<std::int64_t> all;
  for (const auto& row : *rows) all.push_back(std::stoll(row));
  return all;
}

void Soak::expect_nothing_was_skipped_or_repeated() {
  const auto log = seqs("SELECT seq FROM cn_relay.events_outbox ORDER BY seq");
  ASSERT_GT(log.size(), 100U);
  std::cout << fmt::format("[ rows     ] {} from {} to {}\n", log.size(), log.front(), log.back());
  const auto expect_all = [&](const std::string& name, const std::string& statement) {
    const auto done = seqs(statement);
    EXPECT_EQ(done.size(), log.size()) << name;
    const auto differ = std::mismatch(done.begin(), done.end(), log.begin(), log.end());
    EXPECT_TRUE(differ.first == done.end() && differ.second == log.end())
        << name << ": the effect number " << differ.first - done.begin() << " is another";
  };
  for (const char* const name : {"records", "counts", "small"}) {
    expect_all(name, fmt::format("SELECT seq FROM effects WHERE consumer = '{}' ORDER BY n", name));
  }
  expect_all("feed", "SELECT seq FROM feed.journal ORDER BY position");
  EXPECT_EQ(seqs("SELECT count(*) FROM cn_relay.consumer_dead_letters"), std::vector<std::int64_t>{0});
  const auto audited = run_task([this]() -> Task<outbox::Audit> {
    const auto connection = co_await database_->connect();
    const std::function<void(const std::string&)> silent = [](const std::string&) {};
    co_return co_await outbox::audit(*connection, silent);
  });
  for (const auto& consumer : audited.consumers) {
    EXPECT_TRUE(consumer.differences.empty()) << consumer.name;
    EXPECT_EQ(consumer.keeps_record, consumer.name != "feed");
  }
}

}  // namespace todoke::test
