#include <boost/asio/this_coro.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "index/rig.hpp"
#include "pg/transaction.hpp"

namespace todoke::index {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr const char* kState =
    "SELECT string_agg(concat_ws(' ', event_id, pubkey, kind, created_at, ingested_at, topics, tokens, "
    "title, summary, tags), "
    "chr(10) ORDER BY event_id) FROM cn_search.post_search_documents WHERE deleted_at IS NULL";

void write_some(Rig& rig) {
  rig.write({.content = "an english note", .topics = {"a", "b"}});
  rig.write({.content = "東京都庁の写真", .kind = 1111, .author = 'c'});
  rig.write({.content = "long text",
             .kind = 30023,
             .tags_json = R"([["title","The title"],["summary","A summary"]])"});
  rig.write({.content = "hidden", .non_public = true});
  rig.write({.content = "hidden", .tags_json = R"([["scope","invite"]])"});
  rig.write({.content = "+", .kind = 7});
  rig.retire(rig.write({.content = "deleted note"}));
}

TEST_F(IndexTest, ARebuildMakesTheSameDocumentsAsTheLog) {
  write_some(rig_);
  rig_.apply();
  const auto from_log = rig_.one(kState);
  rig_.rebuild_and_swap();
  EXPECT_EQ(rig_.one(kState), from_log);
  EXPECT_THAT(rig_.find("note"), ElementsAre("an english note"));
  EXPECT_THAT(rig_.find("都庁"), ElementsAre("東京都庁の写真"));
}

TEST_F(IndexTest, WhatTheLogSaysAfterARebuildGoesIntoTheNewTable) {
  write_some(rig_);
  rig_.rebuild_and_swap();
  rig_.apply_from(0);
  rig_.write({.content = "after the rebuild"});
  rig_.apply();
  EXPECT_THAT(rig_.find("rebuild"), ElementsAre("after the rebuild"));
  EXPECT_EQ(rig_.one("SELECT count(*) FROM cn_search.post_search_documents"), "4");
}

TEST_F(IndexTest, TheLiveTableServesWhileTheNewOneIsMade) {
  write_some(rig_);
  rig_.apply();
  run_task([&]() -> Task<void> {
    const outbox::Consumer::Progress nothing = [](pg::Connection&, std::int64_t, std::int64_t) -> Task<void> {
      co_return;
    };
    co_await rig_.consumer().rebuild(rig_.pool(), nothing);
  });
  EXPECT_THAT(rig_.find("english"), ElementsAre("an english note"));
  rig_.write({.content = "another english note"});
  rig_.apply();
  EXPECT_THAT(rig_.find("english"), UnorderedElementsAre("an english note", "another english note"));
}

TEST_F(IndexTest, ARebuildTellsItsProgressAndComesToAllEvents) {
  rig_.sql(R"(
    INSERT INTO cn_relay.events (event_id, pubkey, kind, created_at, tags, content, sig, ingested_seq, source, topics)
    SELECT lpad(to_hex(hashint4(i)), 64, '0') || i, repeat('a', 64), 1, i, '[]', 'number ' || i, '', i, 'ws',
      '{kukuri:global}'
    FROM generate_series(1, 4500) i)");
  rig_.rebuild_and_swap();
  EXPECT_EQ(rig_.one("SELECT count(*) FROM cn_search.post_search_documents"), "4500");
  ASSERT_EQ(rig_.progress.size(), 4U);
  EXPECT_EQ(rig_.progress[0].first, 2000);
  EXPECT_EQ(rig_.progress.back(), (std::pair<std::int64_t, std::int64_t>(4500, 4500)));
  EXPECT_THAT(rig_.find("number 4321"), ElementsAre("number 4321"));
}

TEST_F(IndexTest, TheNamesOfIndexesAndTheGrantsSurviveASwap) {
  const auto role = "reader_" + rig_.one("SELECT current_database()");
  rig_.sql(fmt::format("CREATE ROLE {0}; GRANT SELECT ON cn_search.post_search_documents TO {0}", role));
  constexpr const char* kIndexes =
      "SELECT string_agg(regexp_replace(indexdef, '_next', '', 'g'), ';' ORDER BY indexname) FROM pg_indexes "
      "WHERE schemaname = 'cn_search'";
  const auto before = rig_.one(kIndexes);
  for (int i = 0; i < 2; ++i) rig_.rebuild_and_swap();
  EXPECT_EQ(rig_.one(kIndexes), before);
  EXPECT_EQ(rig_.one("SELECT count(*) FROM pg_class WHERE relnamespace = 'cn_search'::regnamespace AND "
                     "relname LIKE '%next%'"),
            "0");
  EXPECT_EQ(rig_.one(fmt::format(
                "SELECT has_table_privilege('{}', 'cn_search.post_search_documents', 'SELECT')", role)),
            "true");
  EXPECT_EQ(
      rig_.one("SELECT obj_description('cn_search.post_search_documents'::regclass) LIKE 'Public posts%'"),
      "true");
  rig_.sql(fmt::format("DROP OWNED BY {0}; DROP ROLE {0}", role));
}

TEST_F(IndexTest, ASwapThatIsRolledBackLeavesTheOldTable) {
  write_some(rig_);
  rig_.apply();
  run_task([&]() -> Task<void> {
    const outbox::Consumer::Progress nothing = [](pg::Connection&, std::int64_t, std::int64_t) -> Task<void> {
      co_return;
    };
    co_await rig_.consumer().rebuild(rig_.pool(), nothing);
    const auto lease = co_await rig_.pool().acquire(soon());
    auto transaction = co_await pg::begin(*lease, soon());
    co_await rig_.consumer().swap(*lease, soon());
    co_await transaction.rollback(soon());
  });
  EXPECT_THAT(rig_.find("english"), ElementsAre("an english note"));
  rig_.rebuild_and_swap();
  EXPECT_THAT(rig_.find("english"), ElementsAre("an english note"));
}

// Waits until something waits for a lock.
Task<void> wait_for_waiter(pg::Connection& connection) {
  constexpr pg::Statement kWaits{"waits",
                                 "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND database = "
                                 "(SELECT oid FROM pg_database WHERE datname = current_database())"};
  const auto deadline = soon();
  while (!deadline.passed()) {
    const auto rows = co_await connection.query(kWaits, {}, soon());
    if (rows.one().get<bool>(0)) co_return;
  }
  throw std::runtime_error("nothing waits");
}

Task<void> search_into(Rig& rig, std::vector<SearchHit>& hits) {
  SearchQuery query;
  query.text = "english";
  const auto page = co_await search(rig.pool(), rig.clock(), query, soon());
  hits = page->hits;
}

TEST_F(IndexTest, WhoComesDuringASwapGetsTheNewTable) {
  write_some(rig_);
  run_task([&]() -> Task<void> {
    const auto executor = co_await asio::this_coro::executor;
    // Plans are kept for the old table.
    std::vector<SearchHit> hits;
    co_await search_into(rig_, hits);
    EXPECT_THAT(hits, IsEmpty());
    const outbox::Consumer::Progress nothing = [](pg::Connection&, std::int64_t, std::int64_t) -> Task<void> {
      co_return;
    };
    co_await rig_.consumer().rebuild(rig_.pool(), nothing);
    {
      const auto swapping = co_await rig_.pool().acquire(soon());
      auto transaction = co_await pg::begin(*swapping, soon());
      co_await rig_.consumer().swap(*swapping, soon());
      Signal ended(executor);
      std::exception_ptr failure;
      spawn(executor, search_into(rig_, hits), [&](std::exception_ptr error) {
        failure = std::move(error);
        ended.set();
      });
      const auto admin = co_await rig_.pool().acquire(soon());
      co_await wait_for_waiter(*admin);
      co_await transaction.commit(soon());
      co_await ended.wait();
      if (failure) std::rethrow_exception(failure);
    }
    EXPECT_EQ(hits.size(), 1U);
  });
}

TEST_F(IndexTest, AnIdThatIsStoredTwiceIsOneDocument) {
  rig_.write({.content = "twice"});
  rig_.sql("INSERT INTO cn_relay.events SELECT e.* FROM cn_relay.events e");
  rig_.rebuild_and_swap();
  EXPECT_EQ(rig_.one("SELECT count(*) FROM cn_search.post_search_documents"), "1");
}

TEST_F(IndexTest, AnEmptyDatabaseIsRebuiltToAnEmptyIndex) {
  rig_.rebuild_and_swap();
  EXPECT_THAT(rig_.find("anything"), IsEmpty());
}

}  // namespace
}  // namespace todoke::index
