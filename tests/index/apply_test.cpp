#include <boost/asio/this_coro.hpp>
#include <gmock/gmock.h>

#include "index/rig.hpp"
#include "index/sweeper.hpp"

namespace todoke::index {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kCount = "SELECT count(*) FROM cn_search.post_search_documents";

TEST_F(IndexTest, PostsOfTheIndexedKindsAreFound) {
  rig_.write({.content = "first note"});
  rig_.write({.content = "first comment", .kind = 1111});
  rig_.write({.content = "first article", .kind = 30023});
  rig_.write({.content = "first reaction", .kind = 7});
  rig_.apply();
  EXPECT_THAT(rig_.find("first"), UnorderedElementsAre("first note", "first comment", "first article"));
}

TEST_F(IndexTest, NothingNonPublicIsIndexed) {
  rig_.write({.content = "secret column", .non_public = true});
  rig_.write({.content = "secret tag", .tags_json = R"([["t","x"],["scope","friend"],["epoch","1"]])"});
  rig_.write({.content = "no secret", .tags_json = R"([["scope","public"]])"});
  rig_.apply();
  EXPECT_THAT(rig_.find("secret"), ElementsAre("no secret"));
  EXPECT_EQ(rig_.one(kCount), "1");
}

TEST_F(IndexTest, ADocumentHasAllTopicsOfItsEventWhateverRowNamedIt) {
  rig_.write({.content = "many", .topics = {"kukuri:global", "b", "c"}});
  rig_.sql("DELETE FROM cn_relay.events_outbox WHERE topic_id <> 'b'");
  rig_.apply();
  EXPECT_EQ(rig_.one("SELECT array_to_string(topics, ' ') FROM cn_search.post_search_documents"),
            "kukuri:global b c");
}

TEST_F(IndexTest, ALaterUpsertAddsItsTopicAndLosesNone) {
  const auto id = rig_.write({.content = "many", .topics = {"a", "b"}});
  rig_.apply();
  // A row that names a topic which the event does not know, and an event that has lost one.
  rig_.sql("UPDATE cn_relay.events SET topics = '{b}'");
  rig_.upsert(id, "z");
  rig_.apply();
  EXPECT_EQ(rig_.one("SELECT array_to_string(topics, ' ') FROM cn_search.post_search_documents"), "a b z");
}

TEST_F(IndexTest, ADeleteHidesTheDocumentAndForgetsItsText) {
  const auto id = rig_.write(
      {.content = "to be deleted", .kind = 30023, .tags_json = R"([["title","Words"],["summary","More"]])"});
  rig_.apply();
  ASSERT_THAT(rig_.find("deleted"), ElementsAre("to be deleted"));
  rig_.retire(id);
  rig_.apply();
  EXPECT_THAT(rig_.find("deleted"), IsEmpty());
  EXPECT_EQ(rig_.one("SELECT deleted_at IS NOT NULL AND tokens = '' AND title IS NULL AND summary IS NULL "
                     "FROM cn_search.post_search_documents"),
            "true");
}

TEST_F(IndexTest, ApplyingTheSameRowsAgainChangesNothing) {
  rig_.write({.content = "kept", .topics = {"a", "b"}});
  const auto gone = rig_.write({.content = "gone"});
  rig_.apply();
  rig_.retire(gone);
  rig_.apply();
  constexpr const char* kState =
      "SELECT string_agg(d::text || d.xmin::text, ',' ORDER BY event_id) FROM "
      "cn_search.post_search_documents d";
  const auto before = rig_.one(kState);
  rig_.apply_from(0);
  EXPECT_EQ(rig_.one(kState), before);
}

TEST_F(IndexTest, AnEventThatHasLostItsEffectBeforeItsRowIsReadNeverBecomesADocument) {
  rig_.write({.content = "short life"});
  rig_.sql("UPDATE cn_relay.events SET superseded_at = now()");
  rig_.apply();
  EXPECT_EQ(rig_.one(kCount), "0");
}

TEST_F(IndexTest, AnUpsertAfterADeleteBringsADocumentBackOnlyIfTheEventIsInEffect) {
  const auto id = rig_.write({.content = "phoenix"});
  rig_.apply();
  rig_.retire(id);
  rig_.upsert(id);
  rig_.apply();
  EXPECT_EQ(rig_.one("SELECT deleted_at IS NOT NULL FROM cn_search.post_search_documents"), "true");

  rig_.sql("UPDATE cn_relay.events SET deleted_at = NULL");
  rig_.upsert(id);
  rig_.apply();
  EXPECT_THAT(rig_.find("phoenix"), ElementsAre("phoenix"));
}

TEST_F(IndexTest, AnUpsertOfAnEventThatLostItsEffectHidesItsDocument) {
  const auto id = rig_.write({.content = "expired"});
  rig_.apply();
  rig_.sql("UPDATE cn_relay.events SET expires_at = now() - interval '1 hour'");
  rig_.upsert(id);
  rig_.apply();
  EXPECT_EQ(rig_.one("SELECT deleted_at IS NOT NULL FROM cn_search.post_search_documents"), "true");
}

TEST_F(IndexTest, TheLastRowOfAnEventInABatchDecides) {
  const auto id = rig_.write({.content = "both"});
  rig_.sql(
      "INSERT INTO cn_relay.events_outbox (op, event_id, topic_id, kind, created_at, ingested_at) "
      "SELECT 'delete', event_id, 'kukuri:global', kind, created_at, ingested_at FROM cn_relay.events");
  rig_.apply();
  EXPECT_THAT(rig_.find("both"), IsEmpty());
  rig_.upsert(id);
  rig_.apply_from(0);
  EXPECT_THAT(rig_.find("both"), ElementsAre("both"));
}

TEST_F(IndexTest, TextWithEveryKindOfCharacterIsStored) {
  std::string all =
      "quote ' \" back \\ colon : star * amp & pipe | bang ! paren ( ) lt < emoji 🎉👩‍👩‍👧 ";
  for (int c = 1; c < 0x80; ++c) all.push_back(static_cast<char>(c));
  rig_.write({.content = all + " end"});
  rig_.apply();
  EXPECT_THAT(rig_.find("pipe bang 🎉 end"), ElementsAre(all + " end"));
}

TEST_F(IndexTest, DocumentsOfPurgedEventsAreSweptInSmallBatches) {
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(rig_.write({.content = "purged or not"}));
  rig_.apply();
  rig_.sql("DELETE FROM cn_relay.events WHERE ingested_seq % 2 = 0");
  EXPECT_EQ(rig_.find("purged").size(), 5U) << "not shown before the sweep either";

  const auto removed = run_task([&]() -> Task<std::vector<std::int64_t>> {
    std::vector<std::int64_t> steps;
    std::string after;
    do {
      const auto lease = co_await rig_.pool().acquire(soon());
      const auto step = co_await sweep_purged(*lease, after, 3, soon());
      steps.push_back(step.removed);
      after = step.last_id;
    } while (!after.empty());
    co_return steps;
  });
  EXPECT_EQ(removed.size(), 4U);
  EXPECT_EQ(rig_.one(kCount), "5");
  EXPECT_EQ(rig_.find("purged").size(), 5U);
}

TEST_F(IndexTest, TheSweeperGoesRoundByItselfAndEndsWhenAsked) {
  for (int i = 0; i < 5; ++i) rig_.write({.content = "purged"});
  rig_.apply();
  rig_.sql("DELETE FROM cn_relay.events");
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    metrics::Registry registry;
    Sweeper sweeper(executor, {.round_every = 1ms, .step_every = 1ms, .step_documents_max = 2}, rig_.pool(),
                    registry);
    co_await sweeper.start();
    Signal ended(executor);
    spawn(executor, sweeper.run(), [&](const std::exception_ptr&) { ended.set(); });
    constexpr pg::Statement kLeft{"left", "SELECT count(*) FROM cn_search.post_search_documents"};
    const auto lease = co_await rig_.pool().acquire(soon());
    const auto deadline = soon();
    std::int64_t left = 5;
    while (left > 0 && !deadline.passed()) {
      const auto rows = co_await lease->query(kLeft, {}, soon());
      left = rows.one().get<std::int64_t>(0);
    }
    sweeper.stop();
    co_await ended.wait();
    EXPECT_EQ(left, 0);
  });
}

TEST_F(IndexTest, AnEventThatWasPurgedAndAcceptedAnewIsFound) {
  const auto id = rig_.write({.content = "again"});
  rig_.apply();
  rig_.sql("UPDATE cn_relay.events SET ingested_at = ingested_at + interval '1 second'");
  rig_.upsert(id);
  rig_.apply();
  EXPECT_THAT(rig_.find("again"), ElementsAre("again"));
}

}  // namespace
}  // namespace todoke::index
