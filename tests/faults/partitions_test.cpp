// Partitions that should be there and are not: the writer makes them and stores the batch.
#include <gtest/gtest.h>

#include "faults/publisher.hpp"
#include "faults/rig.hpp"

namespace todoke::test {
namespace {

struct MissingPartition : testing::Test {
  TempFolder folder;
  RelayProcess relay{folder.path()};
  SqlSession database{conninfo_of(folder.path())};

  void expect_stores_a_batch() {
    Publisher publisher(relay.public_address(), make_notes(100));
    publisher.finish();
    EXPECT_EQ(publisher.accepted(), 100U);
    EXPECT_EQ(problems_in_store(database), "");
    EXPECT_GT(relay.metric("todoke_ingest_retries_total"), 0) << "nothing was missing";
  }
};

TEST_F(MissingPartition, OfTheWeekIsMade) {
  for (const auto* parent : {"events", "topic_links", "event_tags"}) {
    database.run(
        "DROP TABLE cn_relay." +
        database.value("SELECT cn_relay.week_table('" + std::string(parent) + "', cn_relay.week_of(now()))"));
  }
  expect_stores_a_batch();
}

TEST_F(MissingPartition, OfALogThatHasJumpedAheadIsMade) {
  database.run("SELECT setval('cn_relay.events_outbox_seq', 7500000)");
  expect_stores_a_batch();
}

TEST_F(MissingPartition, OfTheLogItselfIsMade) {
  const auto table =
      database.value("SELECT table_name FROM cn_relay.log_partitions ORDER BY first_seq LIMIT 1");
  database.run("DROP TABLE " + table + "; DELETE FROM cn_relay.log_partitions WHERE table_name = '" + table +
               "'");
  expect_stores_a_batch();
}

}  // namespace
}  // namespace todoke::test
