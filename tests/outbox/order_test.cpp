// Who writes to the log: nobody can stop the others, and no seq comes twice.
#include <future>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr const char* kInsert =
    "INSERT INTO cn_relay.{} (op, event_id, topic_id, kind, created_at, ingested_at) "
    "VALUES ('upsert', '{}', 'kukuri:global', 1, 1700000000, now()) RETURNING seq";

class OrderTest : public LogTest {
 protected:
  std::shared_ptr<Recorder> recorder =
      std::make_shared<Recorder>("a", Recorder::Options{.wants_events = false});
};

TEST_F(OrderTest, ASessionThatIsIdleInItsTransactionAfterAnAppendIsCutAndTheOthersGoOn) {
  Instance instance(*db, recorder);
  SqlSession idle(db->url());
  idle.run("BEGIN");
  idle.run(fmt::format(kInsert, "events_outbox_000000", "idle"));
  // Waits for the lock until the idle session is gone.
  EXPECT_EQ(append(1), 2);
  await_end("a");
  EXPECT_THROW(idle.run("COMMIT"), std::runtime_error);
  EXPECT_EQ(log(), (Seqs{2}));
  EXPECT_EQ(effects("a"), (Seqs{2}));
}

TEST_F(OrderTest, AWriterOfAPartitionWaitsForTheOthersLikeEverybody) {
  for (const char* const table : {"events_outbox", "events_outbox_000000"}) {
    SqlSession first(db->url());
    first.run("BEGIN");
    const auto seq = first.run(fmt::format(kInsert, "events_outbox", "first")).at(0);
    auto second = std::async(std::launch::async, [&] {
      return SqlSession(db->url()).run(fmt::format(kInsert, table, "second")).at(0);
    });
    await_true(
        "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())");
    first.run("COMMIT");
    EXPECT_GT(std::stoll(second.get()), std::stoll(seq));
  }
}

TEST_F(OrderTest, AfterARestoreNoSeqComesTwice) {
  append(10);
  EXPECT_EQ(text("SELECT cn_relay.check_log_identity()"), "f");
  EXPECT_EQ(text("SELECT cn_relay.check_log_identity()"), "f");
  Instance instance(*db, recorder);
  await_end("a");
  // What came after the backup was taken, and was read by somebody outside: 11 to 15.
  append(5);
  await_end("a");
  const auto seen = effects("a");
  // The backup: as it was at 10, on another cluster.
  sql.run("BEGIN");
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq > 10");
  sql.run("DELETE FROM cn_relay.events WHERE ingested_seq > 10");
  sql.run("UPDATE cn_relay.consumer_offsets SET last_seq = 10");
  sql.run("SELECT setval('cn_relay.events_outbox_seq', 10)");
  sql.run("UPDATE cn_relay.log_identity SET system_identifier = 'the old one'");
  sql.run("COMMIT");
  EXPECT_EQ(text("SELECT cn_relay.check_log_identity()"), "t");
  EXPECT_EQ(append(3), 1'000'013);
  await_end("a");
  auto all = seen;
  all.insert(all.end(), {1'000'011, 1'000'012, 1'000'013});
  EXPECT_EQ(effects("a"), all);
  EXPECT_EQ(text("SELECT cn_relay.check_log_identity()"), "f");
  // A promoted standby has another timeline.
  sql.run("UPDATE cn_relay.log_identity SET timeline = timeline + 1");
  EXPECT_EQ(text("SELECT cn_relay.check_log_identity()"), "t");
  sql.run("SELECT cn_relay.ensure_partitions(now())");
  EXPECT_EQ(append(1), 2'000'014);
}

TEST_F(OrderTest, AnOffsetWithOnlyTheThreeOldColumnsWorks) {
  sql.run(
      "INSERT INTO cn_relay.consumer_offsets (consumer, last_seq, updated_at) VALUES ('outside', 0, now())");
  append(3);
  SqlSession outside(db->url());
  outside.run("BEGIN");
  EXPECT_EQ(outside.run("SELECT seq, op FROM cn_relay.events_outbox WHERE seq > 0 ORDER BY seq LIMIT 2"),
            (Rows{"1|upsert", "2|upsert"}));
  outside.run(
      "UPDATE cn_relay.consumer_offsets SET last_seq = 2, updated_at = now() WHERE consumer = 'outside'");
  outside.run("COMMIT");
  EXPECT_EQ(offset("outside"), 2);
}

}  // namespace
}  // namespace todoke::test
