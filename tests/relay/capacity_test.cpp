// What a node may hold, at the level of the wire and the tables. Weeks are made old by moving the clock.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr const char* kNodeFull = "todoke_capacity_node_full";
constexpr const char* kEventCount = "SELECT count(*) FROM cn_relay.events";

class CapacityTest : public TopicsTest {
 protected:
  // Events accepted some weeks ago: stored now, their partition and its counters moved there by hand.
  void store_weeks_ago(int weeks, int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i) {
      const auto event = global_note(alice, fmt::format("{} weeks ago, {}", weeks, i));
      store(event);
      ids.push_back("'" + hex_of(event) + "'");
    }
    const auto list = fmt::format("{}", fmt::join(ids, ","));
    const auto then = fmt::format("(now() - interval '{} days')", 7 * weeks);
    rig.sql(fmt::format("SELECT cn_relay.ensure_week({})", then));
    for (const auto* table : {"events", "event_tags"}) {
      rig.sql(
          fmt::format("UPDATE cn_relay.{} SET ingested_at = {} WHERE event_id IN ({})", table, then, list));
    }
    rig.sql(
        fmt::format("UPDATE cn_relay.topic_links SET ingested_at = {} WHERE encode(event_id, 'hex') IN ({})",
                    then, list));
    rig.sql("SELECT cn_relay.recount_usage()");
  }
  [[nodiscard]] std::string count() const { return rig.value(kEventCount); }
};

TEST_F(CapacityTest, TheOldestWeeksGoOneAfterTheOtherUntilThereIsRoom) {
  store_weeks_ago(5, 10);
  store_weeks_ago(3, 10);
  const auto recent = global_note(alice, "recent");
  store(recent);
  rig.change({{"capacity.max_events", "20"}, {"capacity.keep_days", "7"}});
  EXPECT_EQ(rig.await_sql(kEventCount, {"11"}), Rows{"11"});
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events WHERE ingested_at < now() - interval '25 days'"),
            "0");
  EXPECT_TRUE(rig.await_metric("todoke_capacity_partitions_purged_total", 1));
  EXPECT_THAT(client.stored(by_id(recent)).ids, ElementsAre(hex_of(recent)));
  store(global_note(alice, "taken"));
  EXPECT_EQ(rig.metric(kNodeFull), 0);
  EXPECT_EQ(rig.value("SELECT bool_and(enabled) FROM cn_relay.node_subscriptions"), "t");
}

TEST_F(CapacityTest, NothingYoungerThanKeepDaysGoesAndEventsAreRefusedInstead) {
  store_weeks_ago(2, 5);
  rig.change({{"capacity.max_events", "5"}, {"capacity.keep_days", "30"}});
  ASSERT_TRUE(rig.await_metric(kNodeFull, 1));
  EXPECT_EQ(refusal_of(global_note(alice, "refused")), "restricted: capacity");
  EXPECT_EQ(count(), "5");
  // Less has to be kept: the week goes, and events are taken again.
  rig.change({{"capacity.max_events", "5"}, {"capacity.keep_days", "1"}});
  ASSERT_TRUE(rig.await_metric(kNodeFull, 0));
  EXPECT_EQ(count(), "0");
  store(global_note(alice, "taken"));
}

TEST_F(CapacityTest, ANodeIsFullWhenAllIsInUseAndNotFivePercentEarlier) {
  store_weeks_ago(2, 1);
  for (int i = 0; i < 39; ++i) store(global_note(alice, std::to_string(i)));
  rig.change({{"capacity.max_events", "40"}, {"capacity.keep_days", "7"}});
  ASSERT_TRUE(rig.await_metric("todoke_capacity_partitions_purged_total", 1));
  // With 39 in use the last step is not given back, and nothing is left that may go.
  ASSERT_TRUE(rig.await_metric("todoke_capacity_events", 39));
  EXPECT_EQ(rig.metric(kNodeFull), 0);
  store(global_note(alice, "the last one"));
  ASSERT_TRUE(rig.await_metric(kNodeFull, 1));
  EXPECT_EQ(refusal_of(global_note(alice, "refused")), "restricted: capacity");
}

TEST_F(CapacityTest, AFullNodeTakesARequestToVanish) {
  store(global_note(bob, "forget me"));
  rig.change({{"capacity.max_events", "1"}, {"capacity.keep_days", "30"}});
  ASSERT_TRUE(rig.await_metric(kNodeFull, 1));
  EXPECT_EQ(refusal_of(global_note(alice, "refused")), "restricted: capacity");
  store(note(bob, "", {{"relay", "ALL_RELAYS"}}, nostr::kVanish));
  EXPECT_EQ(rig.await_sql("SELECT count(*) FROM cn_relay.events WHERE kind = 1", {"0"}), Rows{"0"});
}

TEST_F(CapacityTest, AFullNodeKnowsADuplicateThatItsMemoryDoesNot) {
  const auto event = global_note(alice, "stored");
  store(event);
  rig.stop();
  rig.start();
  NostrClient again(rig.url());
  rig.change({{"capacity.max_events", "1"}, {"capacity.keep_days", "30"}});
  ASSERT_TRUE(rig.await_metric(kNodeFull, 1));
  EXPECT_EQ(again.publish(global_note(alice, "new")).text, "restricted: capacity");
  const auto answer = again.publish(event);
  EXPECT_TRUE(answer.accepted);
  EXPECT_EQ(answer.text, "duplicate: already stored");
}

TEST_F(CapacityTest, IdsThatOutliveTheirEventsCountAndNoPurgeFreesThem) {
  store_weeks_ago(2, 1);
  // Five megabytes of the limit; the rest of the database is larger on the disk.
  rig.sql(
      "INSERT INTO cn_relay.event_dedupe (event_id) SELECT lpad(i::text, 64, '0') FROM generate_series(1, "
      "20000) i");
  rig.change({{"capacity.max_bytes", "4000000"}, {"capacity.keep_days", "1"}});
  ASSERT_TRUE(rig.await_metric(kNodeFull, 1));
  EXPECT_EQ(count(), "0") << "what may go goes first";
  EXPECT_EQ(refusal_of(global_note(alice, "refused")), "restricted: capacity");
  EXPECT_GT(rig.metric("todoke_capacity_lasting_bytes"), 4'000'000);
  rig.sql("DELETE FROM cn_relay.event_dedupe");
  rig.sql("VACUUM (ANALYZE) cn_relay.event_dedupe");
  ASSERT_TRUE(rig.await_metric(kNodeFull, 0));
  store(global_note(alice, "taken"));
}

TEST_F(CapacityTest, BytesOfTheWholeDatabaseAreALimitToo) {
  store_weeks_ago(2, 3);
  rig.change({{"capacity.max_bytes", "4000"}, {"capacity.keep_days", "1"}});
  EXPECT_EQ(rig.await_sql(kEventCount, {"0"}), Rows{"0"});
}

TEST_F(CapacityTest, LowPriorityIsHeldBeforeAnythingGoes) {
  const auto low = topic('6');
  enable_topic(rig, low);
  rig.sql(fmt::format(R"(UPDATE cn_relay.node_subscriptions SET ingest_policy = '{{"priority":"low"}}'
                         WHERE topic_id = '{}')",
                      low));
  store_weeks_ago(2, 94);
  rig.change({{"capacity.max_events", "100"}});
  ASSERT_TRUE(
      await([&] { return client.publish(note(alice, "", {{"t", low}})).text == "restricted: capacity"; }));
  // One may have come before the limit did.
  EXPECT_GE(std::stoi(count()), 94);
  store(global_note(alice, "normal priority"));
}

TEST_F(CapacityTest, ATopicThatDropsItsOldestStaysWithinItsLimitAndTakesEverything) {
  const auto limited = topic('1');
  enable_topic(rig, limited);
  const auto shared = global_note(alice, "the oldest, of two topics", {{"t", limited}});
  store(shared);
  rig.sql(fmt::format(R"(UPDATE cn_relay.node_subscriptions
                         SET ingest_policy = '{{"max_events":5,"when_full":"drop_oldest"}}' WHERE topic_id = '{}')",
                      limited));
  std::vector<Event> events;
  for (int i = 0; i < 12; ++i) {
    events.push_back(note(alice, std::to_string(i), {{"t", limited}}));
    store(events.back());
  }
  const auto links = fmt::format("SELECT count(*) FROM cn_relay.event_topics WHERE topic_id = '{}'", limited);
  EXPECT_EQ(rig.await_sql(links, {"5"}), Rows{"5"});
  const auto there = [&](const Event& event) {
    return rig.value(
        fmt::format("SELECT count(*) FROM cn_relay.events WHERE event_id = '{}'", hex_of(event)));
  };
  EXPECT_EQ(there(shared), "1") << "it belongs to another topic as well";
  EXPECT_EQ(there(events.front()), "0");
  EXPECT_EQ(there(events.back()), "1");
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_relay.events_outbox WHERE op = 'delete'"), "0");
}

class FullTopicTest : public CapacityTest {
 protected:
  void SetUp() override { enable_topic(rig, limited); }
  void drop_oldest_beyond(int events) {
    rig.sql(fmt::format(R"(UPDATE cn_relay.node_subscriptions
                           SET ingest_policy = '{{"max_events":{},"when_full":"drop_oldest"}}' WHERE topic_id = '{}')",
                        events, limited));
  }
  [[nodiscard]] std::string usage() const {
    return fmt::format("SELECT sum(events) FROM cn_relay.topic_usage WHERE topic_id = '{}'", limited);
  }
  [[nodiscard]] std::string there(const Event& event) const {
    return rig.value(
        fmt::format("SELECT count(*) FROM cn_relay.events WHERE event_id = '{}'", hex_of(event)));
  }

  const std::string limited = topic('1');
};

TEST_F(FullTopicTest, WhoReplacesOneEventAgainAndAgainDrivesNobodyElsesOut) {
  std::vector<Event> others;
  for (int i = 0; i < 4; ++i) {
    others.push_back(note(bob, std::to_string(i), {{"t", limited}}));
    store(others.back());
  }
  // Of two topics: a dead event goes all the same.
  for (int i = 0; i < 40; ++i)
    store(note(alice, std::to_string(i), {{"t", limited}, {"t", "kukuri:global"}}, 0, kTime + i));
  drop_oldest_beyond(5);
  EXPECT_EQ(rig.await_sql(usage(), {"5"}), Rows{"5"});
  for (const auto& event : others) EXPECT_EQ(there(event), "1");
  EXPECT_TRUE(rig.await_metric("todoke_capacity_topic_events_purged_total", 39));
  EXPECT_EQ(rig.value("SELECT cn_relay.recount_usage()"), "0");
}

TEST_F(FullTopicTest, EventsThatMayNotGoAreNotLookedAtAgainEachTime) {
  // More of two topics than one look takes, and after them those that may go.
  rig.sql(fmt::format(
      R"(CREATE TEMP TABLE n AS SELECT i, lpad(to_hex(i), 64, '0') AS id, now() AS at,
           CASE WHEN i <= 10400 THEN ARRAY['{0}', 'kukuri:global'] ELSE ARRAY['{0}'] END AS topics
           FROM generate_series(1, 10420) i;
         INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_at, ingested_seq,
           source, topics) SELECT id, 'p', 1, i, '[]', '', 's', at, i, 'ws', topics FROM n;
         INSERT INTO cn_relay.topic_links (topic_no, event_id, short_id, short_author, kind, created_at, ingested_at, ingested_seq)
           SELECT cn_relay.topic_no('{0}'), decode(id, 'hex'), cn_relay.short_id(id), 0, 1, i, at, i FROM n;
         SELECT cn_relay.recount_usage())",
      limited));
  drop_oldest_beyond(10'410);
  EXPECT_EQ(rig.await_sql(usage(), {"10410"}), Rows{"10410"});
  EXPECT_EQ(rig.value("SELECT min(ingested_seq) FROM cn_relay.events WHERE cardinality(topics) = 1"), "10411")
      << "the oldest of those that may go";
}

}  // namespace
}  // namespace todoke::test
