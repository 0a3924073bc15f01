// How the log is emptied, and who may hold it back.
#include "outbox/retention.hpp"

#include <future>

#include <fmt/format.h>

#include "outbox/audit.hpp"
#include "support.hpp"

namespace todoke::test {
namespace {

using outbox::LogRetention;
using outbox::RetentionOptions;

constexpr std::int64_t kWidth = 1'000'000;  // seqs of a partition

class RetentionTest : public LogTest {
 protected:
  RetentionTest() : pool_({.connect = connect_options()}, clock_, registry) {}
  ~RetentionTest() override { pool_.close(); }

  void round(RetentionOptions options = {}) {
    LogRetention retention(loop_.executor(), options, pool_, board, registry);
    loop_.run(retention.round(RoundCause::time));
  }
  // Rows of partition `index`, five before its end; then the partitions that come next.
  void fill_end_of(std::int64_t index) {
    sql.run(fmt::format("SELECT setval('cn_relay.events_outbox_seq', {})", (index + 1) * kWidth - 6));
    sql.run("SELECT cn_relay.ensure_partitions(now())");
    append(5);
  }
  // As if the rows up to there had been written that many days ago.
  void age(std::int64_t until_seq, int days) {
    sql.run(fmt::format(
        "UPDATE cn_relay.events_outbox SET appended_at = now() - interval '{} days' WHERE seq <= {}", days,
        until_seq));
  }
  std::string state(const std::string& consumer) {
    return text(fmt::format("SELECT state FROM cn_relay.consumer_offsets WHERE consumer = '{}'", consumer));
  }
  Rows partitions() {
    return sql.run(
        "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'cn_relay.events_outbox'::regclass "
        "ORDER BY 1");
  }
  std::int64_t floor() { return number("SELECT dropped_until FROM cn_relay.log_floor"); }
  std::optional<HealthState> health_of(const std::string& name) {
    for (const auto& line : board.lines()) {
      if (line.name == name) return line.health.state;
    }
    return std::nullopt;
  }
  bool is_held_back() { return health_of("log held back") == HealthState::degraded; }
  // A transaction that has locked the offset of a consumer.
  std::unique_ptr<SqlSession> holder_of(const std::string& consumer) {
    auto session = std::make_unique<SqlSession>(db->url());
    session->run("BEGIN");
    session->run(fmt::format(
        "SELECT last_seq FROM cn_relay.consumer_offsets WHERE consumer = '{}' FOR UPDATE", consumer));
    return session;
  }

  std::vector<std::unique_ptr<SqlSession>> holders_;

  metrics::Registry registry;
  HealthBoard board;

 private:
  SystemClock clock_;
  net::test::Loop loop_;
  pg::Pool pool_;
};

TEST_F(RetentionTest, APartitionGoesAsAWholeWhenItsLastRowIsPastRetention) {
  fill_end_of(0);
  append(5);  // into the next one
  add_offset("read", 1'000'004, true);
  add_offset("behind", 999'997);
  age(kWidth - 1, 29);
  round();
  EXPECT_EQ(log().size(), 10U);
  // What is known of a complete partition is not asked again.
  sql.run("UPDATE cn_relay.log_partitions SET last_at = last_at - interval '2 days' WHERE first_seq = 0");
  round();
  EXPECT_EQ(log(), numbers(1'000'000, 1'000'004));
  EXPECT_EQ(partitions(), (Rows{"cn_relay.events_outbox_000001"}));
  EXPECT_EQ(text("SELECT to_regclass('cn_relay.events_outbox_000000') IS NULL"), "t");
  EXPECT_EQ(sql.run("SELECT first_seq FROM cn_relay.log_partitions"), (Rows{"1000000"}));
  EXPECT_EQ(floor(), 999'999);
  EXPECT_EQ(state("read"), "live");
  EXPECT_EQ(state("behind"), "needs_rebuild");
  EXPECT_EQ(metric_of(registry, "todoke_log_partitions_dropped_total"), 1);
  EXPECT_GT(metric_of(registry, "todoke_log_bytes"), 0);
}

// What a consumer recorded of rows that go, whole partitions and single rows.
class RecordedRows : public RetentionTest {
 protected:
  RecordedRows() {
    fill_end_of(0);
    append(5);
    consume();
  }
  void consume() {
    Instance instance(*db, recorder);
    await_end("a");
  }
  // rows recounted, rows that can't be, and what differs
  std::string audited() {
    const auto result = ask([](pg::Connection& c) { return outbox::audit(c, [](const std::string&) {}); });
    const auto& consumer = result.consumers.at(0);
    auto all = fmt::format("{} {}", consumer.rows, consumer.skipped);
    for (const auto& d : consumer.differences) {
      all += fmt::format(", {}-{} {}/{}", d.from_seq, d.to_seq, d.in_log, d.recorded);
    }
    return all;
  }

  std::shared_ptr<Recorder> recorder =
      std::make_shared<Recorder>("a", Recorder::Options{.wants_events = false});
};

TEST_F(RecordedRows, AreTakenOutOfTheRecordAndTheRestIsStillRecounted) {
  EXPECT_EQ(audited(), "10 0");
  age(kWidth - 1, 31);
  round();  // a partition
  EXPECT_EQ(partitions().size(), 1U);
  EXPECT_EQ(audited(), "5 0");
  age(1'000'001, 31);
  round();  // two rows
  EXPECT_EQ(audited(), "3 0");
  append(2);
  consume();
  age(1'000'004, 31);
  round();
  EXPECT_EQ(audited(), "2 0");
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq = 1000005");
  EXPECT_EQ(audited(), "1 0, 1000004-1000006 1/2");
}

TEST_F(RecordedRows, ThatWereSkippedAreFoundAfterTheyAreGone) {
  sql.run("UPDATE cn_relay.consumer_ranges SET row_count = row_count - 1");
  age(kWidth - 1, 31);
  round();
  EXPECT_EQ(audited(), "5 0, 999999-1000004 5/4");
}

TEST_F(RecordedRows, OfARangeThatLostItsBeginningBeforeAreToldAsUnknown) {
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq = 999995");
  sql.run("UPDATE cn_relay.log_floor SET dropped_until = 999995");
  age(kWidth - 1, 31);
  round();
  EXPECT_EQ(audited(), "0 5");
  append(4);
  consume();
  EXPECT_EQ(audited(), "4 5");
}

TEST_F(RetentionTest, AMandatoryConsumerHoldsItsRowsBackWithAnAlert) {
  fill_end_of(0);
  append(5);
  age(kWidth - 1, 31);
  add_offset("index", 999'998, true);
  add_offset("other", 0);
  round();
  EXPECT_EQ(log(), numbers(999'999, 1'000'004));  // what it has read goes
  EXPECT_TRUE(is_held_back());
  EXPECT_EQ(metric_of(registry, "todoke_log_held_back"), 1);
  EXPECT_EQ(state("index"), "live");
  EXPECT_EQ(partitions().size(), 2U);
  sql.run("UPDATE cn_relay.consumer_offsets SET last_seq = 999999 WHERE consumer = 'index'");
  round();
  EXPECT_EQ(log(), numbers(1'000'000, 1'000'004));
  EXPECT_FALSE(is_held_back());
  EXPECT_EQ(metric_of(registry, "todoke_log_held_back"), 0);
  EXPECT_EQ(state("index"), "live");
}

TEST_F(RetentionTest, RowsOlderThanTheLongestTimeGoEvenUnreadAndWhoLostThemNeedsARebuild) {
  fill_end_of(0);
  append(5);
  age(kWidth - 1, 46);
  add_offset("index", 999'996, true);
  add_offset("index2", 1'000'001, true);
  round();
  EXPECT_EQ(log(), numbers(1'000'000, 1'000'004));
  EXPECT_EQ(state("index"), "needs_rebuild");
  EXPECT_EQ(state("index2"), "live");
  EXPECT_FALSE(is_held_back());
}

TEST_F(RetentionTest, ALogBeyondItsSizeLosesOldPartitionsEvenUnread) {
  fill_end_of(0);
  append(5);
  add_offset("index", 999'996, true);
  RetentionOptions small;
  small.bytes_max = 1;
  // Within retention nothing goes, whatever the size.
  age(kWidth - 1, 29);
  round(small);
  EXPECT_EQ(log().size(), 10U);
  sql.run("UPDATE cn_relay.log_partitions SET last_at = last_at - interval '2 days' WHERE first_seq = 0");
  round(small);
  EXPECT_EQ(log(), numbers(1'000'000, 1'000'004));
  EXPECT_EQ(state("index"), "needs_rebuild");
}

TEST_F(RetentionTest, TheLastRowOfTheLogNeverGoes) {
  fill_end_of(0);  // the partition is not complete: the log has not gone beyond it
  age(kWidth, 400);
  round();
  EXPECT_EQ(log(), (Seqs{999'999}));
  round();
  EXPECT_EQ(log(), (Seqs{999'999}));
  EXPECT_EQ(partitions().size(), 2U);
  // Numbers go on after it.
  EXPECT_EQ(append(1), 1'000'000);
}

TEST_F(RetentionTest, OldRowsOfAMixedPartitionGoInSmallBatches) {
  append(12'000);
  age(11'000, 31);
  sql.run(
      "INSERT INTO cn_relay.consumer_offsets (consumer, last_seq) VALUES ('read', 12000), ('behind', 7000)");
  sql.run("CREATE TABLE batches (n bigint)");
  sql.run(
      "CREATE FUNCTION note_batch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "INSERT INTO batches SELECT count(*) FROM gone; RETURN NULL; END $$");
  sql.run(
      "CREATE TRIGGER notes AFTER DELETE ON cn_relay.events_outbox REFERENCING OLD TABLE AS gone "
      "FOR EACH STATEMENT EXECUTE FUNCTION note_batch()");
  round();
  EXPECT_EQ(log(), numbers(11'001, 12'000));
  EXPECT_EQ(floor(), 11'000);
  EXPECT_LE(number("SELECT max(n) FROM batches"), 5'000);
  EXPECT_EQ(metric_of(registry, "todoke_log_rows_deleted_total"), 11'000);
  EXPECT_EQ(state("read"), "live");
  EXPECT_EQ(state("behind"), "needs_rebuild");
}

TEST_F(RetentionTest, AMandatoryConsumerHoldsBackRowsOfAMixedPartitionToo) {
  append(100);
  age(80, 31);
  add_offset("index", 30, true);
  round();
  EXPECT_EQ(log(), numbers(31, 100));
  EXPECT_TRUE(is_held_back());
  EXPECT_EQ(state("index"), "live");
  age(60, 46);
  round();
  EXPECT_EQ(log(), numbers(61, 100));
  EXPECT_EQ(state("index"), "needs_rebuild");
  // It holds nothing back any more: it has lost its place.
  round();
  EXPECT_EQ(log(), numbers(81, 100));
  EXPECT_FALSE(is_held_back());
}

TEST_F(RetentionTest, OnlyAPartitionOfTheLogThatNobodyNeedsIsDropped) {
  fill_end_of(0);
  append(5);
  const auto drop = [this] { return sql.tried("SELECT cn_relay.drop_log_partition(0)"); };
  EXPECT_EQ(drop(), "55000") << "above the floor";
  sql.run("UPDATE cn_relay.log_floor SET dropped_until = 999999");
  sql.run("UPDATE cn_relay.log_partitions SET table_name = 'cn_relay.events' WHERE first_seq = 0");
  EXPECT_NE(drop(), "") << "no partition of the log";
  EXPECT_EQ(text("SELECT to_regclass('cn_relay.events') IS NULL"), "f");
  sql.run(
      "UPDATE cn_relay.log_partitions SET table_name = 'cn_relay.events_outbox_000000' WHERE first_seq = 0");
  sql.run("SELECT cn_relay.drop_log_partition(0)");
  EXPECT_EQ(partitions(), (Rows{"cn_relay.events_outbox_000001"}));
  EXPECT_NE(sql.tried("SELECT cn_relay.drop_log_partition(1000000)"), "") << "the one that is written";
}

TEST_F(RetentionTest, WhoHasReadTheLastRowOfAPartitionHasLostNothingWhenThereIsAGapBehindIt) {
  append(10);
  add_offset("read", 10);
  add_offset("index", 10, true);
  fill_end_of(1);  // nothing between 10 and there
  append(5);
  sql.run("UPDATE cn_relay.events_outbox SET appended_at = now() - interval '31 days' WHERE seq <= 10");
  round();
  EXPECT_EQ(log().front(), 2 * kWidth - 5);
  EXPECT_EQ(state("read"), "live");
  EXPECT_EQ(state("index"), "live");
  EXPECT_EQ(floor(), 10);
  EXPECT_FALSE(is_held_back());
}

TEST_F(RetentionTest, KeysAndRangesOfRowsThatAreGoneGoToo) {
  append(20);
  {
    Instance instance(*db, std::make_shared<Recorder>("a", Recorder::Options{.once = outbox::Once::event}));
    await_end("a");
  }
  sql.run(
      "INSERT INTO cn_relay.consumer_effects (consumer, event_id, seq) SELECT 'a', 'old ' || i, 5 "
      "FROM generate_series(1, 12000) i");
  sql.run("INSERT INTO cn_relay.consumer_ranges VALUES ('a', -5, 0, 0, 0)");
  age(15, 31);
  round();
  EXPECT_EQ(number("SELECT min(seq) FROM cn_relay.consumer_effects"), 16);
  EXPECT_EQ(number("SELECT count(*) FROM cn_relay.consumer_effects"), 5);
  EXPECT_EQ(sql.run("SELECT from_seq FROM cn_relay.consumer_ranges"), (Rows{"15"}));
}

TEST_F(RetentionTest, OneProcessAtATime) {
  append(10);
  age(9, 31);
  SqlSession other(db->url());
  other.run("SELECT pg_advisory_lock(cn_names.lock_retention())");
  round();
  EXPECT_EQ(log().size(), 10U);
  other.run("SELECT pg_advisory_unlock(cn_names.lock_retention())");
  round();
  EXPECT_EQ(log(), (Seqs{10}));
  // It has let go of the lock.
  EXPECT_EQ(other.run("SELECT pg_try_advisory_lock(cn_names.lock_retention())"), (Rows{"t"}));
}

TEST_F(RetentionTest, NoRowGoesBeforeWhoLostItIsMarked) {
  append(10);
  age(9, 31);
  add_offset("behind", 3);
  sql.run(
      "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END "
      "$$");
  sql.run(
      "CREATE TRIGGER refuses BEFORE UPDATE OF state ON cn_relay.consumer_offsets "
      "FOR EACH ROW EXECUTE FUNCTION refuse()");
  EXPECT_THROW(round(), pg::Error);
  EXPECT_EQ(log().size(), 10U);
  EXPECT_EQ(floor(), 0);
  // A round that failed keeps nobody from the next one.
  sql.run("DROP TRIGGER refuses ON cn_relay.consumer_offsets");
  round();
  EXPECT_EQ(log(), (Seqs{10}));
  EXPECT_EQ(state("behind"), "needs_rebuild");
}

TEST_F(RetentionTest, AConsumerThatHoldsItsOffsetKeepsNothingAndIsMarkedWhenItMoves) {
  append(10);
  add_offset("holds", 3);
  add_offset("lets go", 3);
  add_offset("has read", 5);
  for (const char* const name : {"holds", "lets go", "has read"}) holders_.push_back(holder_of(name));
  holders_.back()->run("UPDATE cn_relay.consumer_offsets SET last_seq = 9 WHERE consumer = 'has read'");
  age(9, 31);
  round();
  EXPECT_EQ(log(), (Seqs{10}));
  EXPECT_EQ(floor(), 9);
  // It goes on from where it stood, and what it passes over is gone.
  holders_[0]->run("UPDATE cn_relay.consumer_offsets SET last_seq = 10 WHERE consumer = 'holds'");
  for (auto& holder : holders_) holder->run("COMMIT");
  EXPECT_EQ(state("holds"), "needs_rebuild");
  EXPECT_EQ(state("lets go"), "live");
  EXPECT_EQ(state("has read"), "live");
  round();
  EXPECT_EQ(state("lets go"), "needs_rebuild");
  EXPECT_EQ(state("has read"), "live");
}

TEST_F(RetentionTest, WhoBeginsWithAnEmptyOffsetTakesWhatIsLeft) {
  append(10);
  age(9, 31);
  round();
  add_offset("new", 0);
  sql.run("UPDATE cn_relay.consumer_offsets SET last_seq = 10 WHERE consumer = 'new'");
  round();
  EXPECT_EQ(state("new"), "live");
}

TEST_F(RetentionTest, AnOpenTransactionPutsOffItsPartitionAndNotTheRestOfTheRound) {
  fill_end_of(0);
  append(10);
  age(kWidth + 4, 31);
  SqlSession reader(db->url());
  reader.run("BEGIN");
  reader.run("SELECT count(*) FROM cn_relay.events_outbox");
  for (int i = 0; i < 2; ++i) {
    round();
    EXPECT_EQ(log(), numbers(kWidth + 5, kWidth + 9));
    EXPECT_EQ(health_of("log held open"), HealthState::degraded);
  }
  reader.run("COMMIT");
  round();
  EXPECT_EQ(partitions(), (Rows{"cn_relay.events_outbox_000001"}));
  EXPECT_EQ(health_of("log held open"), std::nullopt);
}

TEST_F(RetentionTest, DuringLoadNobodySkipsOrRepeatsAnything) {
  fill_end_of(0);
  const auto first = log().front();
  const auto recorder =
      std::make_shared<Recorder>("a", Recorder::Options{.mandatory = true, .wants_events = false});
  Instance instance(*db, recorder);
  std::atomic<bool> writes = true;
  auto writer = std::async(std::launch::async, [&] {
    SqlSession session(db->url());
    for (int i = 0; i < 60; ++i) session.run("SELECT append(7)");
    writes = false;
  });
  RetentionOptions at_once;
  at_once.keep = 1ms;
  while (writes) round(at_once);
  writer.get();
  await_end("a");
  round(at_once);
  EXPECT_EQ(log().size(), 1U);
  EXPECT_EQ(partitions().size(), 1U);
  EXPECT_EQ(state("a"), "live");
  EXPECT_EQ(effects("a"), numbers(first, first + 4 + 60 * 7));
}

}  // namespace
}  // namespace todoke::test
