// The audit finds what was skipped, lost or tampered with, and nothing else.
#include "outbox/audit.hpp"

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

using outbox::Audit;

class AuditTest : public LogTest {
 protected:
  AuditTest() {
    append(30);
    consume();
  }
  void consume() {
    Instance instance(*db, recorder);
    await_end("a");
  }
  Audit audit() {
    return ask([](pg::Connection& c) { return outbox::audit(c, [](const std::string&) {}); });
  }
  // from-to log/recorded
  std::string differences(const Audit& result) {
    std::string all;
    for (const auto& d : result.consumers.at(0).differences) {
      all += fmt::format("{}-{} {}/{} ", d.from_seq, d.to_seq, d.in_log, d.recorded);
    }
    return all;
  }

  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>("a");
};

TEST_F(AuditTest, ALogThatWasFollowedIsClean) {
  add_offset("outside", 7);
  const auto result = audit();
  EXPECT_TRUE(result.is_clean());
  ASSERT_EQ(result.consumers.size(), 2U);
  EXPECT_EQ(result.consumers[0].rows, 30);
  EXPECT_EQ(result.consumers[0].skipped, 0);
  EXPECT_TRUE(result.consumers[0].keeps_record);
  EXPECT_FALSE(result.consumers[1].keeps_record);
  EXPECT_EQ(result.log.head, 30);
}

TEST_F(AuditTest, ARangeWithAnotherCountOrOtherRowsDiffers) {
  sql.run("UPDATE cn_relay.consumer_ranges SET row_count = row_count + 1");
  auto result = audit();
  EXPECT_FALSE(result.is_clean());
  EXPECT_EQ(differences(result), "0-30 30/31 ");
  sql.run("UPDATE cn_relay.consumer_ranges SET row_count = row_count - 1, row_hash = row_hash # 4");
  result = audit();
  EXPECT_EQ(differences(result), "0-30 30/30 ");
}

TEST_F(AuditTest, ARowThatWasTakenFromTheLogOrPutIntoItAfterwardsIsFound) {
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq = 11");
  auto result = audit();
  EXPECT_EQ(differences(result), "0-30 29/30 ");
  EXPECT_EQ(result.log.events_without_row, (std::vector<std::string>{id_of(11)}));
  sql.run(fmt::format(
      "INSERT INTO cn_relay.events_outbox (seq, op, event_id, topic_id, kind, created_at, ingested_at) "
      "SELECT 11, 'upsert', event_id, 'kukuri:other', kind, created_at, ingested_at "
      "FROM cn_relay.events WHERE event_id = '{}'",
      id_of(11)));
  result = audit();
  EXPECT_EQ(differences(result), "0-30 30/30 ");
  EXPECT_THAT(result.log.events_without_row, IsEmpty());
}

TEST_F(AuditTest, RowsThatWereNeverRecordedAreFound) {
  append(5);
  sql.run("UPDATE cn_relay.consumer_offsets SET last_seq = 33 WHERE consumer = 'a'");
  EXPECT_EQ(differences(audit()), "30-33 3/-1 ");
  consume();
  EXPECT_EQ(differences(audit()), "30-33 3/-1 ");
}

TEST_F(AuditTest, AnEventThatIsGoneWithoutAReasonIsLost) {
  sql.run(fmt::format("DELETE FROM cn_relay.events WHERE event_id = '{}'", id_of(4)));
  const auto result = audit();
  EXPECT_FALSE(result.is_clean());
  EXPECT_EQ(result.log.upserts_without_event, (Seqs{4}));
  EXPECT_EQ(result.log.purged, 0);
}

TEST_F(AuditTest, AnEventThatAnOperatorRemovedOrThatWasDroppedWithItsMonthIsPurged) {
  append_row(4, "delete", "kukuri:global", "operator");
  append_row(5, "delete", "kukuri:global", "dsar");
  sql.run("UPDATE cn_relay.events_outbox SET ingested_at = now() - interval '3 months' WHERE seq = 6");
  sql.run(fmt::format("DELETE FROM cn_relay.events WHERE event_id IN ('{}', '{}', '{}')", id_of(4), id_of(5),
                      id_of(6)));
  consume();
  const auto result = audit();
  EXPECT_TRUE(result.is_clean());
  EXPECT_EQ(result.log.purged, 3);
}

TEST_F(AuditTest, AnEventThatLostItsEffectWithoutARowIsFound) {
  for (const auto* mark : {"deleted_at", "superseded_at", "expired_at"}) {
    sql.run(fmt::format("UPDATE cn_relay.events SET {} = now() WHERE event_id = '{}'", mark, id_of(4)));
    const auto result = audit();
    EXPECT_FALSE(result.is_clean());
    EXPECT_EQ(result.log.losses_without_row, (std::vector<std::string>{id_of(4)})) << mark;
    sql.run(fmt::format("UPDATE cn_relay.events SET {} = NULL WHERE event_id = '{}'", mark, id_of(4)));
  }
  sql.run(fmt::format("UPDATE cn_relay.events SET deleted_at = now() WHERE event_id = '{}'", id_of(5)));
  append_row(5, "delete", "kukuri:global", "nip09");
  consume();
  EXPECT_TRUE(audit().is_clean());
}

// Retention may have taken the row that told it.
TEST_F(AuditTest, AnEventThatLostItsEffectBeforeTheOldestRowDoesNotDiffer) {
  sql.run(
      fmt::format("UPDATE cn_relay.events SET deleted_at = '2020-01-01' WHERE event_id = '{}'", id_of(4)));
  EXPECT_FALSE(audit().is_clean()) << "nothing has been dropped";
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq <= 10");
  sql.run("UPDATE cn_relay.log_floor SET dropped_until = 10");
  EXPECT_TRUE(audit().is_clean());
}

TEST_F(AuditTest, RangesThatAReplayHasCutCanNotBeRecountedAndDoNotDiffer) {
  sql.run("UPDATE cn_relay.consumer_offsets SET last_seq = 12 WHERE consumer = 'a'");
  consume();
  const auto result = audit();
  EXPECT_TRUE(result.is_clean()) << differences(result);
  EXPECT_EQ(result.consumers[0].skipped, 12);
  EXPECT_EQ(result.consumers[0].rows, 18);
}

TEST_F(AuditTest, AGapInTheLogIsNeitherReadNorCounted) {
  sql.run("SELECT cn_relay.move_log()");
  append(5);
  consume();
  auto result = audit();
  EXPECT_TRUE(result.is_clean()) << differences(result);
  EXPECT_EQ(result.consumers[0].rows, 35);
  sql.run("UPDATE cn_relay.consumer_offsets SET last_seq = last_seq - 2 WHERE consumer = 'a'");
  consume();
  result = audit();
  EXPECT_EQ(result.consumers[0].skipped, 33);
  EXPECT_EQ(result.consumers[0].rows, 2);
}

TEST_F(AuditTest, WhatARebuildHasPassedOverDoesNotDiffer) {
  sql.run("UPDATE cn_relay.consumer_offsets SET paused = true WHERE consumer = 'a'");
  append(10);
  {
    Instance instance(*db, recorder);
    ASSERT_TRUE(ask([](pg::Connection& c) { return outbox::ask_for_rebuild(c, "a", soon()); }));
    await_end("a");
  }
  sql.run("UPDATE cn_relay.consumer_offsets SET paused = false WHERE consumer = 'a'");
  append(5);
  consume();
  const auto result = audit();
  EXPECT_TRUE(result.is_clean()) << differences(result);
  EXPECT_EQ(result.consumers[0].skipped, 10);
  EXPECT_EQ(result.consumers[0].rows, 35);
}

// Whatever has taken the rows did not tell what they were.
TEST_F(AuditTest, OfARangeWhoseBeginningIsGoneOnlyRowsTooManyDiffer) {
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq <= 10");
  sql.run("UPDATE cn_relay.log_floor SET dropped_until = 10");
  auto result = audit();
  EXPECT_TRUE(result.is_clean()) << differences(result);
  EXPECT_EQ(result.log.dropped_until, 10);
  EXPECT_EQ(result.consumers[0].rows, 0);
  EXPECT_EQ(result.consumers[0].skipped, 20);
  sql.run("UPDATE cn_relay.consumer_ranges SET row_count = 19");
  result = audit();
  EXPECT_EQ(differences(result), "0-30 20/19 ");
}

TEST_F(AuditTest, BuriedRowsCountAsTaken) {
  recorder->before([](const outbox::Work& work) {
    if (has_seq(work, 32)) throw std::runtime_error("poison");
  });
  append(5);
  consume();
  EXPECT_EQ(number("SELECT count(*) FROM cn_relay.consumer_dead_letters"), 1);
  EXPECT_TRUE(audit().is_clean());
}

}  // namespace
}  // namespace todoke::test
