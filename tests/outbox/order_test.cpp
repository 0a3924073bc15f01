// Who writes to the log: nobody can stop the others, and no seq comes twice.
#include <future>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr const char* kInsert =
    "INSERT INTO cn_relay.{} (op, event_id, topic_id, kind, created_at, ingested_at) "
    "VALUES ('upsert', '{}', 'kukuri:global', 1, 1700000000, now()) RETURNING seq";

constexpr const char* kLocked = "SELECT head, since, moved FROM cn_relay.lock_log()";

class OrderTest : public LogTest {
 protected:
  std::string locked() { return text(kLocked); }

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

TEST_F(OrderTest, ALogInAnotherPlaceGoesOnAfterTheClocksMicroseconds) {
  append(10);
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(locked(), "10|0|f");
  EXPECT_EQ(SqlSession(db->url()).run(kLocked), (Rows{"10|0|f"}));
  auto since = std::int64_t{0};
  for (const auto* const change :
       {"system_identifier = 'the old one'", "timeline = timeline + 1", "database = 1"}) {
    SCOPED_TRACE(change);
    sql.run(
        fmt::format("BEGIN; UPDATE cn_relay.log_identity SET {}; "
                    "UPDATE cn_relay.log_identity SET written_by = xmin; COMMIT",
                    change));
    const auto clock = number("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)");
    SqlSession session(db->url());
    const auto before = since;
    since = std::stoll(session.value("SELECT since FROM cn_relay.lock_log() WHERE moved"));
    EXPECT_GE(since, clock);
    EXPECT_GT(since, before);
    EXPECT_EQ(session.run(kLocked), (Rows{fmt::format("{0}|{0}|f", since)}));
    EXPECT_EQ(locked(), fmt::format("{0}|{0}|f", since)) << "in a session that knew the log before";
    EXPECT_EQ(append(3), since + 3);
    since += 3;
    await_end("a");
  }
  EXPECT_EQ(log(), effects("a"));
  EXPECT_EQ(log().size(), 19U);
}

TEST_F(OrderTest, AMoveIsNotedInASubtransactionToo) {
  append(1);
  sql.run("UPDATE cn_relay.log_identity SET timeline = timeline + 1");
  sql.run("BEGIN; SAVEPOINT a; SELECT cn_relay.lock_log(); RELEASE a; COMMIT");
  const auto since = number("SELECT since_seq FROM cn_relay.log_identity");
  EXPECT_GT(since, 1);
  EXPECT_EQ(SqlSession(db->url()).run(kLocked), (Rows{fmt::format("{0}|{0}|f", since)}));
}

TEST_F(OrderTest, AWriterThatDoesNotKnowOfTheLockIsRefusedUntilTheLogHasMovedOn) {
  append(1);
  sql.run("UPDATE cn_relay.log_identity SET timeline = timeline + 1");
  for (const char* const table : {"events_outbox", "events_outbox_000000"}) {
    EXPECT_EQ(SqlSession(db->url()).tried(fmt::format(kInsert, table, "stranger")), "55000");
  }
  SqlSession stranger(db->url());
  stranger.run("BEGIN");
  const auto since = std::stoll(stranger.value("SELECT since FROM cn_relay.lock_log()"));
  const auto seq = stranger.run(fmt::format(kInsert, "events_outbox", "stranger")).at(0);
  stranger.run("COMMIT");
  EXPECT_EQ(std::stoll(seq), since + 1);
  EXPECT_EQ(log(), (Seqs{1, since + 1}));
}

TEST_F(OrderTest, WhoHasSeenMoreThanTheLogHoldsMovesItBeyondThat) {
  append(10);
  EXPECT_EQ(text("SELECT moved FROM cn_relay.lock_log(10)"), "f");
  const auto since = number("SELECT since FROM cn_relay.lock_log(11) WHERE moved");
  EXPECT_GT(since, 1'700'000'000'000'000);
  EXPECT_EQ(text(fmt::format("SELECT moved FROM cn_relay.lock_log({})", since)), "f");
}

TEST_F(OrderTest, AClockBehindTheSeqsOrFarAheadIsNotBelievedAndNoSeqReaches2To53) {
  constexpr std::int64_t kDay = 86'400'000'000;
  const std::int64_t future = 4'000'000'000'000'000;  // the year 2096
  sql.run(fmt::format("SELECT setval('cn_relay.events_outbox_seq', {})", future));
  const auto first = number("SELECT cn_relay.move_log()");
  EXPECT_GE(first, future + kDay);
  EXPECT_LT(first, future + 2 * kDay);
  // The same backup a second time, later: not the same seqs.
  sql.run(fmt::format("SELECT setval('cn_relay.events_outbox_seq', {})", future));
  EXPECT_NE(number("SELECT cn_relay.move_log()"), first);
  const auto seq = append(1);
  EXPECT_EQ(log(), (Seqs{seq}));

  constexpr std::int64_t kLast = (std::int64_t{1} << 53) - 1;
  sql.run(fmt::format("SELECT setval('cn_relay.events_outbox_seq', {})", kLast));
  EXPECT_EQ(sql.tried("SELECT nextval('cn_relay.events_outbox_seq')"), "2200H");
}

TEST_F(OrderTest, PartitionsBeyondAMillionHaveNamesOfTheirOwn) {
  sql.run("SELECT setval('cn_relay.events_outbox_seq', 1234567000000)");
  EXPECT_EQ(number("SELECT cn_relay.ensure_partitions(now())"), 2);
  sql.run("SELECT setval('cn_relay.events_outbox_seq', 1234568999999)");
  EXPECT_EQ(number("SELECT cn_relay.ensure_partitions(now())"), 1);
  EXPECT_EQ(append(2), 1'234'569'000'001);
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
