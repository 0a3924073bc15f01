// Following the log: order, effects with their offset, batches, what wakes a consumer.
#include <atomic>
#include <stdexcept>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class FollowTest : public LogTest {
 protected:
  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>("a");
};

// Nothing but what the test does can wake it.
InstanceOptions asleep(bool listens) {
  InstanceOptions options;
  options.runner.poll_every = std::chrono::minutes(10);
  options.listens = listens;
  return options;
}

TEST_F(FollowTest, RowsAreTakenOnceEachInAscendingOrderFromTheOffset) {
  append(5);
  add_offset("a", 2);
  Instance instance(*db, recorder);
  append(40);
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(3, 45));
  EXPECT_EQ(instance.metric("todoke_consumer_rows_total{consumer=\"a\"}"), 43);
}

TEST_F(FollowTest, ANewConsumerBeginsAtTheBeginningOfTheLog) {
  append(3);
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 3));
  EXPECT_EQ(text("SELECT mandatory, state FROM cn_relay.consumer_offsets WHERE consumer = 'a'"), "f|live");
}

TEST_F(FollowTest, UpsertsComeWithTheirEventsAndDeletesWithout) {
  append(2);
  append_row(1, "delete", "kukuri:global", "nip09");
  sql.run(fmt::format("UPDATE cn_relay.events SET deleted_at = now() WHERE event_id = '{}'", id_of(1)));
  std::string seen;
  recorder->before([&](const outbox::Work& work) {
    for (const auto& row : work.rows) {
      seen += fmt::format("{} {} {}", row.seq.value, to_string(row.op), row.reason.value_or("-"));
      const auto event = work.events.find(row.event_id);
      if (row.op == outbox::Op::upsert) {
        const auto& found = event->second;
        seen +=
            fmt::format(" {} {} {} {}", found.content, found.tags_json, found.topics.at(0), found.effective);
      }
      seen += "\n";
    }
  });
  Instance instance(*db, recorder);
  await_end("a");
  instance.stop();
  EXPECT_EQ(seen,
            "1 upsert - text 1 [[\"t\",\"kukuri:global\"]] kukuri:global false\n"
            "2 upsert - text 2 [[\"t\",\"kukuri:global\"]] kukuri:global true\n"
            "3 delete nip09\n");
}

TEST_F(FollowTest, RowsWhoseEventWasPurgedAreSkippedAndCountedAndNoDeadLetters) {
  append(5);
  append_row(4, "delete", "kukuri:global", "operator");
  sql.run(fmt::format("DELETE FROM cn_relay.events WHERE event_id IN ('{}', '{}')", id_of(2), id_of(4)));
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(effects("a"), (Seqs{1, 3, 5, 6}));
  EXPECT_EQ(number("SELECT purged_rows FROM cn_relay.consumer_offsets WHERE consumer = 'a'"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM cn_relay.consumer_dead_letters"), 0);
  EXPECT_EQ(instance.metric("todoke_consumer_purged_rows_total{consumer=\"a\"}"), 2);
}

TEST_F(FollowTest, EffectsAndOffsetCommitTogetherOrNotAtAll) {
  append(10);
  std::atomic<int> kills = 0;
  recorder->after([&](const outbox::Work& work) {
    if (++kills > 3) return;
    // The effects are there, the offset has not moved.
    SqlSession(db->url()).run(fmt::format("SELECT pg_terminate_backend({})", work.connection.backend_pid()));
  });
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_GT(kills, 3);
  EXPECT_EQ(effects("a"), numbers(1, 10));
  EXPECT_EQ(number("SELECT count(*) FROM cn_relay.consumer_dead_letters"), 0);
}

TEST_F(FollowTest, EffectsOutsideTheDatabaseAreRepeatedRatherThanSkipped) {
  append(10);
  Seqs outside;
  std::atomic<int> kills = 0;
  recorder->before([&](const outbox::Work& work) {
    for (const auto& row : work.rows) outside.push_back(row.seq.value);
  });
  recorder->after([&](const outbox::Work& work) {
    if (++kills > 1) return;
    SqlSession(db->url()).run(fmt::format("SELECT pg_terminate_backend({})", work.connection.backend_pid()));
  });
  Instance instance(*db, recorder);
  await_end("a");
  instance.stop();
  auto twice = numbers(1, 10);
  twice.insert(twice.end(), outside.begin(), outside.begin() + 10);
  EXPECT_EQ(outside, twice);
}

TEST_F(FollowTest, BatchesGrowWhileTheyAreQuickAndShrinkWhenTheyAreSlow) {
  ManualClock clock;
  InstanceOptions options;
  options.clock = &clock;
  options.runner.rows_min = 4;
  options.runner.rows_max = 32;
  options.runner.batch_aim = 100ms;
  append(200);
  std::atomic<int> calls = 0;
  recorder->before([&](const outbox::Work&) { clock.advance(++calls <= 5 ? 10ms : 1s); });
  {
    Instance instance(*db, recorder, options);
    await_end("a");
  }
  const auto batches = recorder->batches();
  ASSERT_GE(batches.size(), 10U);
  EXPECT_EQ(std::vector(batches.begin(), batches.begin() + 10),
            (std::vector<std::size_t>{4, 8, 16, 32, 32, 32, 16, 8, 4, 4}));
  EXPECT_EQ(effects("a"), numbers(1, 200));
}

TEST_F(FollowTest, IsWokenInProcess) {
  Instance instance(*db, recorder, asleep(false));
  for (int i = 1; i <= 5; ++i) {
    append(1);
    instance.log().moved();
    await_end("a");
  }
  EXPECT_EQ(effects("a"), numbers(1, 5));
}

TEST_F(FollowTest, IsWokenByNotify) {
  Instance instance(*db, recorder, asleep(true));
  for (int i = 1; i <= 5; ++i) {
    append(1);
    sql.run("SELECT pg_notify(cn_names.channel_log(), '')");
    await_end("a");
  }
  EXPECT_EQ(effects("a"), numbers(1, 5));
}

TEST_F(FollowTest, LooksByItselfWhenEveryNotifyIsLost) {
  InstanceOptions options;
  options.listens = false;
  Instance instance(*db, recorder, options);
  for (int i = 1; i <= 5; ++i) {
    append(1);
    await_end("a");
  }
  EXPECT_EQ(effects("a"), numbers(1, 5));
}

TEST_F(FollowTest, AListenerThatWasCutOffLooksForWhatItMissed) {
  Instance instance(*db, recorder, asleep(true));
  for (int i = 1; i <= 3; ++i) {
    await_true(
        "SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'instance listener' AND query LIKE 'LISTEN%'");
    // Nobody notifies: only that it is connected again can wake it.
    append(1);
    sql.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'instance listener'");
    await_end("a");
  }
  EXPECT_EQ(effects("a"), numbers(1, 3));
}

TEST_F(FollowTest, PausedItTakesNothingAndResumedItGoesOn) {
  append(1);
  Instance instance(*db, recorder);
  await_end("a");
  ASSERT_TRUE(ask([](pg::Connection& c) { return outbox::set_paused(c, "a", true, soon()); }));
  append(3);
  // It has looked since: a paused consumer still sees that its offset was moved, and that it is asked to
  // rebuild.
  ASSERT_TRUE(ask([](pg::Connection& c) { return outbox::ask_for_rebuild(c, "a", soon()); }));
  await_true(
      "SELECT state = 'live' AND rebuild_since IS NULL FROM cn_relay.consumer_offsets WHERE consumer = 'a'");
  EXPECT_EQ(effects("a"), (Seqs{1}));
  // The rebuild has put it at the end of the log.
  append(2);
  ASSERT_TRUE(ask([](pg::Connection& c) { return outbox::set_paused(c, "a", false, soon()); }));
  await_end("a");
  EXPECT_EQ(effects("a"), (Seqs{1, 5, 6}));
}

TEST_F(FollowTest, YoungRowsWaitWhileTheWriterIsBusy) {
  append(1);
  std::atomic<bool> fails = true;
  recorder->before([&](const outbox::Work&) {
    if (fails) throw std::runtime_error("poison");
  });
  InstanceOptions options;
  options.runner.defer_max = 1h;
  Instance instance(*db, recorder, options);
  await_end("a");
  fails = false;
  instance.log().set_busy(true);
  append(3);
  // It has looked since: a buried row has its second try.
  ask([](pg::Connection& c) { return outbox::retry_dead_letters(c, "a", 1, soon()); });
  await_true("SELECT count(*) = 0 FROM cn_relay.consumer_dead_letters");
  EXPECT_EQ(effects("a"), (Seqs{1}));
  // Old ones do not.
  sql.run("UPDATE cn_relay.events_outbox SET ingested_at = ingested_at - interval '2 hours'");
  sql.run("UPDATE cn_relay.events SET ingested_at = ingested_at - interval '2 hours'");
  await_end("a");
  append(3);
  instance.log().set_busy(false);
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 7));
}

TEST_F(FollowTest, NoRowWaitsBecauseTheClockWasSetBack) {
  ManualClock years_ago;
  InstanceOptions options;
  options.clock = &years_ago;
  options.runner.defer_max = 1h;
  Instance instance(*db, recorder, options);
  instance.log().set_busy(true);
  append(3);
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(1, 3));
}

TEST_F(FollowTest, ANameThatNobodyHasIsRefused) {
  const auto paused = ask([](pg::Connection& c) { return outbox::set_paused(c, "nobody", true, soon()); });
  ASSERT_FALSE(paused);
  EXPECT_THAT(paused.error().message, HasSubstr("there is no consumer nobody"));
  EXPECT_FALSE(ask([](pg::Connection& c) { return outbox::ask_for_rebuild(c, "nobody", soon()); }));
  EXPECT_FALSE(ask([](pg::Connection& c) { return outbox::replay(c, "nobody", {0, {}}, soon()); }));
}

TEST_F(FollowTest, TheListShowsWhereEachConsumerStands) {
  append(10);
  sql.run("UPDATE cn_relay.events_outbox SET appended_at = now() - interval '1 hour' WHERE seq = 5");
  add_offset("outside", 4, true);
  Instance instance(*db, recorder);
  await_end("a");
  const auto views = ask([](pg::Connection& c) { return outbox::list_consumers(c, {}, soon()); });
  ASSERT_EQ(views.size(), 2U);
  EXPECT_EQ(views[0].name, "a");
  EXPECT_EQ(views[0].last_seq, 10);
  EXPECT_EQ(views[0].head, 10);
  EXPECT_EQ(views[0].backlog_rows, 0);
  EXPECT_EQ(views[0].backlog_seconds, 0);
  EXPECT_TRUE(views[0].held);
  EXPECT_EQ(views[0].epoch, 1);
  EXPECT_EQ(views[1].name, "outside");
  EXPECT_EQ(views[1].backlog_rows, 6);
  EXPECT_GE(views[1].backlog_seconds, 3'600);
  EXPECT_TRUE(views[1].mandatory);
  EXPECT_FALSE(views[1].held);
  EXPECT_EQ(views[1].owner, std::nullopt);
  EXPECT_EQ(ask([](pg::Connection& c) { return outbox::list_consumers(c, "outside", soon()); }).size(), 1U);
}

}  // namespace
}  // namespace todoke::test
