// The log under writers that know nothing of it: who reads on from the last seq it has seen misses nothing.
#include <atomic>
#include <iostream>
#include <random>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "faults/publisher.hpp"
#include "faults/rig.hpp"
#include "faults/subscriber.hpp"

namespace todoke::test {
namespace {

// Transactions of one to three rows, into `table`, with pauses before their end; one of four is rolled back.
void write_as_a_stranger(const std::string& conninfo, const std::string& table, std::uint32_t seed,
                         const std::atomic<bool>& stop) {
  SqlSession database(conninfo);
  std::mt19937 engine(seed);
  const auto below = [&](int end) { return std::uniform_int_distribution<int>(0, end - 1)(engine); };
  while (!stop) {
    database.run("BEGIN");
    for (int rows = below(3) + 1; rows > 0; --rows) {
      database.run(
          "INSERT INTO " + table +
          " (op, event_id, topic_id, kind, created_at, ingested_at) "
          "VALUES ('upsert', md5(random()::text) || md5(random()::text), 'kukuri:global', 1, 0, now())");
      if (below(2) == 0) database.run("SELECT pg_sleep(0.002 * random())");
    }
    database.run(below(4) == 0 ? "ROLLBACK" : "COMMIT");
  }
}

TEST(LogOrder, AReaderMissesNoRowWhoeverWrites) {
  const auto seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  const TempFolder folder;
  RelayProcess relay(folder.path());
  const auto conninfo = conninfo_of(folder.path());
  SqlSession reader(conninfo);
  const auto partition =
      reader.value("SELECT table_name FROM cn_relay.log_partitions ORDER BY first_seq LIMIT 1");
  LiveSubscriber subscriber(relay.url(), R"({"#t":["kukuri:global"],"limit":0})");

  std::atomic<bool> stop = false;
  std::vector<std::thread> strangers;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::string table = i % 2 == 0 ? "cn_relay.events_outbox" : partition;
    strangers.emplace_back([&, table, i] { write_as_a_stranger(conninfo, table, seed + i, stop); });
  }
  constexpr std::size_t kEvents = 1'000;
  auto events = make_notes(kEvents);
  const auto last = events.back().id().hex();
  Publisher publisher(relay.public_address(), std::move(events), 10);

  std::vector<std::string> read;
  std::string after = "0";
  const auto follow = [&] {
    const auto rows =
        reader.run("SELECT seq FROM cn_relay.events_outbox WHERE seq > " + after + " ORDER BY seq LIMIT 100");
    read.insert(read.end(), rows.begin(), rows.end());
    if (!rows.empty()) after = rows.back();
    return !rows.empty();
  };
  while (publisher.answered() < kEvents) follow();
  stop = true;
  for (auto& stranger : strangers) stranger.join();
  while (follow()) {
  }
  EXPECT_EQ(publisher.accepted(), kEvents);
  EXPECT_EQ(read, reader.run("SELECT seq FROM cn_relay.events_outbox ORDER BY seq"));
  EXPECT_GT(read.size(), kEvents) << "the strangers must have written as well";
  const auto given_out = std::stoull(reader.value("SELECT last_value FROM cn_relay.events_outbox_seq"));
  EXPECT_LT(read.size(), given_out) << "some must have been rolled back";

  subscriber.wait_for(last);
  EXPECT_EQ(subscriber.ids().size(), kEvents) << "rows of strangers do not disturb live delivery";
}

}  // namespace
}  // namespace todoke::test
