// Backlogs, and the pressure that the backlog of mandatory consumers makes.
#include "outbox/monitor.hpp"

#include <mutex>

#include <fmt/format.h>

#include "base/log.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using outbox::LogMonitor;
using outbox::Pressure;

const outbox::MonitorOptions kOptions{.thresholds = {{10, 20, 40}},
                                      .needed = {{.name = "index", .role = "index", .key = "relay.search"}},
                                      .looks_without_max = 2};

class MonitorTest : public LogTest {
 protected:
  MonitorTest() : pool_({.connect = connect_options()}, clock_, registry) {
    append(100);
    add_offset("index", 100, true);
    add_offset("outside", 0);
    sql.run(
        "UPDATE cn_relay.consumer_offsets SET lease_until = now() + interval '1 hour' WHERE consumer = "
        "'index'");
  }
  ~MonitorTest() override { pool_.close(); }

  // One look with the consumer that far behind.
  void look_at(int behind) {
    sql.run(fmt::format("UPDATE cn_relay.consumer_offsets SET last_seq = {} WHERE consumer = 'index'",
                        100 - behind));
    loop_.run(monitor_.start());
  }
  std::string health(const std::string& name = "pressure") {
    for (const auto& line : board.lines()) {
      if (line.name == name) return fmt::format("{}: {}", to_string(line.health.state), line.health.detail);
    }
    return "";
  }

  metrics::Registry registry;
  HealthBoard board;
  Pressure pressure;

 private:
  SystemClock clock_;
  net::test::Loop loop_;
  pg::Pool pool_;

 protected:
  LogMonitor monitor_{loop_.executor(), kOptions, pressure, pool_, board, registry};
  net::test::Loop& loop() { return loop_; }
};

TEST_F(MonitorTest, PressureRisesAndFallsWithTheBacklogOfMandatoryConsumersAndIsTold) {
  std::mutex mutex;
  std::string lines;
  {
    const log::Capture capture([&](std::string_view line) {
      const std::lock_guard lock(mutex);
      lines += std::string(line) + "\n";
    });
    look_at(0);
    EXPECT_EQ(pressure.level(), 0);  // "outside" is 100 behind, and nobody waits for it
    EXPECT_EQ(health(), "up: 0, normal");
    look_at(12);
    EXPECT_EQ(pressure.level(), 1);
    EXPECT_EQ(metric_of(registry, "todoke_pressure"), 1);
    EXPECT_EQ(health(), "degraded: 1, no backfill: index is 12 rows behind");
    look_at(6);
    EXPECT_EQ(pressure.level(), 1);  // not below half of the threshold
    look_at(50);
    EXPECT_EQ(pressure.level(), 3);
    look_at(20);
    EXPECT_EQ(pressure.level(), 2);
    look_at(5);
    EXPECT_EQ(pressure.level(), 0);
    EXPECT_EQ(health(), "up: 0, normal");
    EXPECT_EQ(metric_of(registry, "todoke_pressure"), 0);
    log::flush();
  }
  EXPECT_THAT(lines, HasSubstr("pressure is 1 (no backfill)"));
  EXPECT_THAT(lines, HasSubstr("pressure is 3 (acceptance is tightened)"));
  EXPECT_THAT(lines, HasSubstr("pressure is 2 (low-priority topics are held)"));
  EXPECT_THAT(lines, HasSubstr("pressure is 0 (normal)"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
}

TEST_F(MonitorTest, EveryConsumerHasItsBacklogInRowsAndSeconds) {
  sql.run("UPDATE cn_relay.events_outbox SET appended_at = now() - interval '1 hour' WHERE seq = 98");
  look_at(3);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"index\"}"), 3);
  EXPECT_GE(metric_of(registry, "todoke_outbox_lag_seconds{consumer=\"index\"}"), 3'600);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"outside\"}"), 100);
  sql.run("DELETE FROM cn_relay.consumer_offsets WHERE consumer = 'outside'");
  look_at(0);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"outside\"}"), 0);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"index\"}"), 0);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_lag_seconds{consumer=\"index\"}"), 0);
}

TEST_F(MonitorTest, WhatRetentionHasTakenIsNoBacklog) {
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq <= 95");
  sql.run("UPDATE cn_relay.log_floor SET dropped_until = 95");
  look_at(100);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"index\"}"), 5);
  EXPECT_EQ(pressure.level(), 0);
}

TEST_F(MonitorTest, GapsAreNoBacklog) {
  // Transactions that were rolled back, an operator who moved the sequence, a restore.
  sql.run("SELECT setval('cn_relay.events_outbox_seq', 700000)");
  append(1);
  sql.run("SELECT setval('cn_relay.events_outbox_seq', 5000000)");
  sql.run("SELECT cn_relay.ensure_partitions(now())");
  append(1);
  sql.run("SELECT cn_relay.move_log()");
  append(3);
  look_at(2);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"index\"}"), 7);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"outside\"}"), 105);
  EXPECT_EQ(pressure.level(), 0);
  EXPECT_EQ(health(), "up: 0, normal");
  const auto views = ask([](pg::Connection& c) { return outbox::list_consumers(c, "index", soon()); });
  EXPECT_EQ(views.at(0).backlog_rows, 7);
}

TEST_F(MonitorTest, RowsThatWereRolledBackAreNoBacklogOfTheSlowestConsumer) {
  sql.run("UPDATE cn_relay.consumer_offsets SET last_seq = 100 WHERE consumer = 'outside'");
  sql.run("SELECT setval('cn_relay.events_outbox_seq', 150)");
  append(10);
  look_at(0);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"index\"}"), 10);
  EXPECT_EQ(metric_of(registry, "todoke_outbox_backlog{consumer=\"outside\"}"), 10);
}

TEST_F(MonitorTest, FarBehindOnlyGapsInsideOfAPartitionCount) {
  const auto behind = [&] {
    look_at(0);
    return metric_of(registry, "todoke_outbox_backlog{consumer=\"outside\"}");
  };
  append(12'000);
  EXPECT_EQ(behind(), 12'100);
  sql.run("SELECT cn_relay.move_log()");
  append(11'000);
  EXPECT_EQ(behind(), 23'100);
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq BETWEEN 101 AND 1100");
  EXPECT_EQ(behind(), 23'100);
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq <= 100");
  EXPECT_EQ(behind(), 22'000);
}

TEST_F(MonitorTest, LooksAgainByItself) {
  look_at(0);
  auto running = loop().start(monitor_.run());
  sql.run("UPDATE cn_relay.consumer_offsets SET last_seq = 50 WHERE consumer = 'index'");
  EXPECT_TRUE(await([&] { return pressure.level() == 3; }));
  loop().call([&] { monitor_.stop(); });
  running.get();
  EXPECT_EQ(health(), "");
}

TEST_F(MonitorTest, ANeededConsumerThatNobodyRunsOrThatStandsStillIsTold) {
  const auto set = [&](const std::string& assignments) {
    sql.run("UPDATE cn_relay.consumer_offsets SET " + assignments + " WHERE consumer = 'index'");
    look_at(0);
    return health("relay.search");
  };
  // A node that starts has a moment to take the name.
  EXPECT_EQ(set("lease_until = NULL"), "up: ");
  look_at(0);
  EXPECT_EQ(set("lease_until = now() - interval '1 second'"),
            "degraded: relay.search is on, but no node runs index (role index)");
  EXPECT_EQ(set("lease_until = now() + interval '1 hour'"), "up: ");
  EXPECT_EQ(set("paused = true"),
            "degraded: relay.search is on, but index is paused (`todoke consumers resume index`)");
  EXPECT_EQ(set("paused = false, state = 'needs_rebuild'"),
            "degraded: relay.search is on, but index has lost rows (`todoke consumers rebuild index`)");
  EXPECT_EQ(set("state = 'rebuilding'"), "up: ");
  sql.run("DELETE FROM cn_relay.consumer_offsets WHERE consumer = 'index'");
  for (int i = 0; i < 3; ++i) look_at(0);
  EXPECT_THAT(health("relay.search"), HasSubstr("no node runs index"));
}

TEST_F(MonitorTest, AConsumerThatHasLostRowsIsTold) {
  look_at(0);
  EXPECT_EQ(health("consumers"), "up: ");
  sql.run("UPDATE cn_relay.consumer_offsets SET state = 'needs_rebuild' WHERE consumer = 'index'");
  look_at(0);
  EXPECT_EQ(health("consumers"),
            "degraded: rows that were not read yet have left the log: must start again: index");
}

}  // namespace
}  // namespace todoke::test
