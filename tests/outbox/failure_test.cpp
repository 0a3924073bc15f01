// What goes wrong: rows that keep failing, consumers that hang, a database that is gone.
#include <atomic>
#include <stdexcept>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class FailureTest : public LogTest {
 protected:
  // Fails whenever the batch holds the row, as long as `fails`.
  void poison(std::int64_t seq, const std::string& error = "this row is poison") {
    recorder->before([this, seq, error](const outbox::Work& work) {
      if (fails && has_seq(work, seq)) throw std::runtime_error(error);
    });
  }
  std::vector<outbox::DeadLetter> letters() {
    return ask([](pg::Connection& c) { return outbox::list_dead_letters(c, "a", 100, soon()); });
  }
  std::size_t retry(std::optional<std::int64_t> seq) {
    return ask([seq](pg::Connection& c) { return outbox::retry_dead_letters(c, "a", seq, soon()); });
  }

  std::atomic<bool> fails = true;
  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>("a");
};

TEST_F(FailureTest, ARowThatKeepsFailingIsBuriedAndTheOthersAreApplied) {
  append(20);
  poison(7);
  InstanceOptions options;
  options.runner.tries_max = 3;
  Instance instance(*db, recorder, options);
  await_end("a");
  auto others = numbers(1, 20);
  others.erase(others.begin() + 6);
  EXPECT_EQ(effects("a"), others);
  const auto buried = letters();
  ASSERT_EQ(buried.size(), 1U);
  EXPECT_EQ(buried[0].seq, 7);
  EXPECT_EQ(buried[0].op, "upsert");
  EXPECT_EQ(buried[0].event_id, id_of(7));
  EXPECT_EQ(buried[0].topic_id, "kukuri:global");
  EXPECT_EQ(buried[0].error, "this row is poison");
  EXPECT_EQ(buried[0].tries, 3);
  EXPECT_EQ(instance.metric("todoke_consumer_dead_letters_total{consumer=\"a\"}"), 1);
  EXPECT_EQ(ask([](pg::Connection& c) { return outbox::list_consumers(c, "a", soon()); }).at(0).dead_letters,
            1);
}

TEST_F(FailureTest, AnErrorThatPassesIsTriedAgainAndLeavesNothingBehind) {
  append(1);
  std::atomic<int> calls = 0;
  recorder->before([&](const outbox::Work&) {
    if (++calls < 4) throw std::runtime_error("not yet");
  });
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(effects("a"), (Seqs{1}));
  EXPECT_THAT(letters(), IsEmpty());
  EXPECT_EQ(instance.metric("todoke_consumer_retries_total{consumer=\"a\"}"), 3);
}

TEST_F(FailureTest, AStatementThatTheDatabaseRefusesCountsAsTheRowsFailure) {
  append(3);
  recorder->also_run([](const outbox::Work& work) {
    return has_seq(work, 2) ? std::string("SELECT 1 / 0") : std::string();
  });
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(effects("a"), (Seqs{1, 3}));
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_THAT(letters().at(0).error, HasSubstr("division by zero"));
}

TEST_F(FailureTest, AnErrorThatPostgresCanNotStoreBuriesItsRowAllTheSame) {
  append(3);
  recorder->before([](const outbox::Work& work) {
    // The limit falls into the first of two characters; the other is no UTF-8 at all.
    if (has_seq(work, 1)) throw std::runtime_error(std::string(999, 'x') + "\xE6\x97\xA5\xE6\x9C\xAC");
    if (has_seq(work, 2)) throw std::runtime_error("broken \xFF here");
  });
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(effects("a"), (Seqs{3}));
  ASSERT_EQ(letters().size(), 2U);
  EXPECT_EQ(letters().at(0).error, std::string(999, 'x'));
  EXPECT_EQ(letters().at(1).error, "broken ? here");
}

// Whoever is erased leaves no letter behind, whenever it is written.
TEST_F(FailureTest, NoLetterIsWrittenOfAnEventThatIsErasedMeanwhile) {
  append(3);
  sql.run("INSERT INTO cn_relay.event_dedupe (event_id) SELECT event_id FROM cn_relay.events");
  poison(2);
  SqlSession eraser(db->url());
  eraser.run("BEGIN");
  eraser.run(fmt::format("DELETE FROM cn_relay.events WHERE event_id = '{}'", id_of(2)));
  Instance instance(*db, recorder);
  // It waits for what becomes of the event.
  await_true(
      "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND "
      "wait_event_type = 'Lock' AND query LIKE '%consumer_dead_letters%' AND pid <> pg_backend_pid()");
  eraser.run("COMMIT");
  await_end("a");
  EXPECT_EQ(effects("a"), (Seqs{1, 3}));
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(FailureTest, ADeadLetterThatIsRetriedIsAppliedOrStaysWithItsNewError) {
  append(5);
  poison(3);
  Instance instance(*db, recorder);
  await_end("a");
  ASSERT_EQ(letters().size(), 1U);
  const auto tries = letters().at(0).tries;

  poison(3, "still poison");
  EXPECT_EQ(retry(3), 1U);
  await_true("SELECT NOT retry AND error = 'still poison' FROM cn_relay.consumer_dead_letters");
  EXPECT_EQ(letters().at(0).tries, tries + 1);

  fails = false;
  EXPECT_EQ(retry(std::nullopt), 1U);
  await_true("SELECT count(*) = 0 FROM cn_relay.consumer_dead_letters");
  EXPECT_EQ(effects("a"), (Seqs{1, 2, 4, 5, 3}));
  EXPECT_EQ(offset("a"), 5);
}

TEST_F(FailureTest, ADeadLetterWhoseRowRetentionHasTakenIsForgottenWhenItIsRetried) {
  append(3);
  poison(2);
  Instance instance(*db, recorder);
  await_end("a");
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq = 2");
  EXPECT_EQ(retry(2), 1U);
  await_true("SELECT count(*) = 0 FROM cn_relay.consumer_dead_letters");
  EXPECT_EQ(effects("a"), (Seqs{1, 3}));
}

TEST_F(FailureTest, DeadLettersAreDroppedOneByOneOrAllAtOnce) {
  append(4);
  recorder->before([](const outbox::Work&) { throw std::runtime_error("nothing works"); });
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(letters().size(), 4U);
  const auto drop = [this](std::optional<std::int64_t> seq) {
    return ask([seq](pg::Connection& c) { return outbox::drop_dead_letters(c, "a", seq, soon()); });
  };
  EXPECT_EQ(drop(2), 1U);
  EXPECT_EQ(drop(2), 0U);
  EXPECT_EQ(letters().size(), 3U);
  EXPECT_EQ(drop(std::nullopt), 3U);
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(FailureTest, ARowThatHangsInTheDatabaseIsBuriedAfterItsDeadlines) {
  append(4);
  recorder->also_run([](const outbox::Work& work) {
    return has_seq(work, 2) ? std::string("SELECT pg_sleep(600)") : std::string();
  });
  InstanceOptions options;
  options.runner.batch_max = 1s;
  options.runner.tries_max = 2;
  Instance instance(*db, recorder, options);
  await_end("a");
  EXPECT_EQ(effects("a"), (Seqs{1, 3, 4}));
  ASSERT_EQ(letters().size(), 1U);
  // A retry that hangs again holds nobody up either.
  retry(2);
  append(2);
  await_end("a");
  await_true("SELECT NOT retry FROM cn_relay.consumer_dead_letters");
  EXPECT_EQ(effects("a"), (Seqs{1, 3, 4, 5, 6}));
}

TEST_F(FailureTest, ADatabaseThatKeepsCuttingEveryConnectionStopsNothing) {
  Instance instance(*db, recorder);
  for (int i = 0; i < 30; ++i) {
    append(3);
    sql.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid()");
  }
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 90));
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(FailureTest, ADatabaseThatIsGoneForAWhileBuriesNothing) {
  append(3);
  InstanceOptions impatient;
  impatient.runner.tries_max = 1;
  Instance instance(*db, recorder, impatient);
  await_end("a");
  const auto failures = [&] { return instance.metric("todoke_pg_pool_timeouts_total{pool=\"main\"}"); };
  {
    TestDatabase elsewhere;
    SqlSession admin(elsewhere.url());
    append(5);
    admin.run(fmt::format("ALTER DATABASE {} ALLOW_CONNECTIONS false", db->name()));
    admin.run(fmt::format("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'",
                          db->name()));
    // It has been refused for longer than it waits for a connection.
    EXPECT_TRUE(await([&] { return failures() >= 1; }));
    admin.run(fmt::format("ALTER DATABASE {} ALLOW_CONNECTIONS true", db->name()));
  }
  sql = SqlSession(db->url());
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 8));
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(FailureTest, AConsumerThatCanDoNothingForAWhileBuriesNothing) {
  std::atomic<int> refusals = 0;
  recorder->before([&](const outbox::Work&) {
    if (++refusals <= 20) throw outbox::NotNow("the other end is away");
  });
  append(5);
  InstanceOptions impatient;
  impatient.runner.tries_max = 1;
  Instance instance(*db, recorder, impatient);
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 5));
  EXPECT_THAT(letters(), IsEmpty());
  EXPECT_GT(refusals, 20);
}

}  // namespace
}  // namespace todoke::test
