// Deriving everything anew while the log goes on.
#include <atomic>
#include <future>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class RebuildTest : public LogTest {
 protected:
  RebuildTest() { sql.run("CREATE TABLE mirror (event_id text PRIMARY KEY)"); }

  void ask_for_rebuild() {
    ASSERT_TRUE(ask([](pg::Connection& c) { return outbox::ask_for_rebuild(c, "mirror", soon()); }));
  }
  outbox::ConsumerView view() {
    return ask([](pg::Connection& c) { return outbox::list_consumers(c, "mirror", soon()); }).at(0);
  }
  void erase(std::int64_t seq) {
    sql.run("BEGIN");
    sql.run("SELECT cn_relay.lock_log()");
    sql.run(fmt::format("UPDATE cn_relay.events SET deleted_at = now() WHERE event_id = '{}'", id_of(seq)));
    append_row(seq, "delete", "kukuri:global", "nip09");
    sql.run("COMMIT");
  }
  void expect_mirror_is_right() {
    EXPECT_EQ(sql.run("SELECT event_id FROM mirror ORDER BY event_id"),
              sql.run("SELECT event_id FROM cn_relay.effective_events ORDER BY event_id"));
  }

  std::shared_ptr<Mirror> mirror = std::make_shared<Mirror>("mirror");
};

TEST_F(RebuildTest, TheNewStoreTakesTheOldOnesPlaceWhileRowsKeepComing) {
  append(50);
  std::atomic<int> pages = 0;
  mirror->between_pages = [&] {
    // Live rows during the rebuild: new events, and the end of one that is in the new store already.
    ++pages;
    SqlSession(db->url()).run("SELECT append(2)");
  };
  Instance instance(*db, mirror);
  await_end("mirror");
  // What only a rebuild mends.
  sql.run("DELETE FROM mirror WHERE event_id < (SELECT max(event_id) FROM mirror)");
  sql.run("INSERT INTO mirror VALUES ('rubbish')");
  ask_for_rebuild();
  ASSERT_TRUE(await([&] { return pages >= 3; }));
  erase(5);
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  append(3);
  await_end("mirror");
  instance.stop();
  expect_mirror_is_right();
  EXPECT_EQ(text("SELECT to_regclass('mirror_new') IS NULL"), "t");
}

TEST_F(RebuildTest, LiveConsumptionGoesOnBesideIt) {
  append(30);
  std::atomic<int> pages = 0;
  mirror->between_pages = [&] { ++pages; };
  Instance instance(*db, mirror);
  await_end("mirror");
  mirror->pause = std::make_shared<Signal>(instance.executor());
  ask_for_rebuild();
  ASSERT_TRUE(await([&] { return pages == 1; }));
  append(5);
  erase(31);
  await_end("mirror");
  EXPECT_EQ(view().state, "rebuilding");
  expect_mirror_is_right();
  mirror->pause->set_from_anywhere();
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  await_end("mirror");
  instance.stop();
  mirror->pause.reset();
  expect_mirror_is_right();
}

TEST_F(RebuildTest, TheSwapAndABatchThatIsUnderWayDoNotLockEachOtherOut) {
  append(30);
  Instance instance(*db, mirror);
  await_end("mirror");
  // The swap stands in line behind a reader of the old table, and a batch behind the swap.
  sql.run("BEGIN");
  sql.run("LOCK TABLE mirror IN ACCESS SHARE MODE");
  SqlSession other(db->url());
  other.run("UPDATE cn_relay.consumer_offsets SET state = 'rebuilding'");
  const auto waiting = [&](const char* count) {
    return await([&] {
      return other.run(
                 "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'mirror'::regclass "
                 "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") ==
             Rows{count};
    });
  };
  ASSERT_TRUE(waiting("1"));
  other.run("SELECT append(5)");
  ASSERT_TRUE(waiting("2"));
  sql.run("COMMIT");
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  await_end("mirror");
  EXPECT_EQ(instance.metric("todoke_consumer_retries_total{consumer=\"mirror\"}"), 0);
  instance.stop();
  expect_mirror_is_right();
}

TEST_F(RebuildTest, ARebuildThatFailsIsTriedAgain) {
  append(30);
  std::atomic<int> attempts = 0;
  mirror->between_pages = [&] {
    if (++attempts < 4) throw std::runtime_error("it fails");
  };
  Instance instance(*db, mirror);
  await_end("mirror");
  ask_for_rebuild();
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  EXPECT_GE(attempts, 4);
}

TEST_F(RebuildTest, ItsProgressCanBeSeen) {
  append(35);
  std::promise<void> reached;
  std::promise<void> go_on;
  std::atomic<int> pages = 0;
  mirror->between_pages = [&] {
    if (++pages != 2) return;
    reached.set_value();
    go_on.get_future().wait();
  };
  Instance instance(*db, mirror);
  await_end("mirror");
  EXPECT_EQ(view().rebuilding_seconds, std::nullopt);
  ask_for_rebuild();
  reached.get_future().wait();
  const auto seen = view();
  EXPECT_EQ(seen.state, "rebuilding");
  EXPECT_EQ(seen.rebuild_done, 20);
  EXPECT_EQ(seen.rebuild_total, 35);
  EXPECT_GE(seen.rebuilding_seconds.value_or(-1), 0);
  go_on.set_value();
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  EXPECT_EQ(view().rebuilding_seconds, std::nullopt);
}

TEST_F(RebuildTest, ASwapThatFailsIsTriedAgainWithoutRebuildingAnew) {
  append(5);
  std::atomic<int> swaps = 0;
  mirror->before_swap = [&] {
    if (++swaps < 3) throw std::runtime_error("the swap fails");
  };
  Instance instance(*db, mirror);
  await_end("mirror");
  sql.run("CREATE TABLE made (n bigserial)");
  sql.run(
      "CREATE FUNCTION note_table() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN "
      "INSERT INTO made SELECT FROM pg_event_trigger_ddl_commands() WHERE object_identity = "
      "'public.mirror_new'; END $$");
  sql.run(
      "CREATE EVENT TRIGGER notes ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION "
      "note_table()");
  ask_for_rebuild();
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  EXPECT_EQ(swaps, 3);
  EXPECT_EQ(number("SELECT count(*) FROM made"), 1);
}

TEST_F(RebuildTest, AStopDoesNotWaitForItsEnd) {
  append(50);
  std::atomic<int> pages = 0;
  mirror->between_pages = [&] { ++pages; };
  {
    Instance instance(*db, mirror);
    await_end("mirror");
    mirror->pause = std::make_shared<Signal>(instance.executor());
    ask_for_rebuild();
    ASSERT_TRUE(await([&] { return pages == 1; }));
    instance.ask_to_stop();
    mirror->pause->set_from_anywhere();
    instance.stop();
    mirror->pause.reset();
  }
  EXPECT_EQ(view().state, "rebuilding");
  EXPECT_EQ(pages, 1);
  // The next instance begins it again.
  Instance next(*db, mirror);
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  next.stop();
  expect_mirror_is_right();
}

TEST_F(RebuildTest, AnInstanceThatLostTheNameCanNotSwap) {
  append(25);
  std::atomic<bool> is_first = true;
  mirror->before_swap = [&] {
    if (!is_first.exchange(false)) return;
    SqlSession(db->url()).run("UPDATE cn_relay.consumer_offsets SET epoch = epoch + 1");
    SqlSession(db->url()).run("INSERT INTO mirror VALUES ('of the next holder')");
  };
  Instance instance(*db, mirror);
  await_end("mirror");
  ask_for_rebuild();
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  EXPECT_FALSE(is_first);
  instance.stop();
  expect_mirror_is_right();
}

TEST_F(RebuildTest, AConsumerThatComesAfterRetentionBeginsWithARebuild) {
  append(20);
  sql.run("DELETE FROM cn_relay.events_outbox WHERE seq <= 15");
  sql.run("UPDATE cn_relay.log_floor SET dropped_until = 15");
  Instance instance(*db, mirror);
  await_end("mirror");
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  instance.stop();
  expect_mirror_is_right();
}

TEST_F(RebuildTest, AConsumerThatLostRowsWaitsForTheRebuildAndGoesOnAfterIt) {
  append(20);
  add_offset("mirror", 3);
  sql.run("UPDATE cn_relay.consumer_offsets SET state = 'needs_rebuild'");
  Instance instance(*db, mirror);
  await_true("SELECT epoch = 1 FROM cn_relay.consumer_offsets");
  EXPECT_EQ(offset("mirror"), 3);
  ask_for_rebuild();
  await_end("mirror");
  await_true("SELECT state = 'live' FROM cn_relay.consumer_offsets");
  append(2);
  await_end("mirror");
  instance.stop();
  expect_mirror_is_right();
}

TEST_F(RebuildTest, RetentionThatPassedARebuildMeanwhileMakesItNecessaryAgain) {
  append(20);
  std::atomic<bool> is_first = true;
  mirror->before_swap = [&] {
    if (is_first.exchange(false))
      SqlSession(db->url()).run("UPDATE cn_relay.log_floor SET dropped_until = 1000");
  };
  Instance instance(*db, mirror);
  await_end("mirror");
  ask_for_rebuild();
  await_true("SELECT state = 'needs_rebuild' FROM cn_relay.consumer_offsets");
}

}  // namespace
}  // namespace todoke::test
