// Going back and forth in the log, and effects that must not count twice.
#include <algorithm>
#include <atomic>
#include <functional>
#include <future>

#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

class ReplayTest : public LogTest {
 protected:
  Expected<outbox::Seq> replay(outbox::ReplayPoint point) {
    return ask([point](pg::Connection& c) { return outbox::replay(c, "a", point, soon()); });
  }
  void set_offset(std::int64_t seq) {
    sql.run(fmt::format("UPDATE cn_relay.consumer_offsets SET last_seq = {} WHERE consumer = 'a'", seq));
  }
  Seqs keys() {
    Seqs seqs;
    for (const auto& row :
         sql.run("SELECT seq FROM cn_relay.consumer_effects WHERE consumer = 'a' ORDER BY seq")) {
      seqs.push_back(std::stoll(row));
    }
    return seqs;
  }
  static std::shared_ptr<Recorder> counting(outbox::Once once) {
    return std::make_shared<Recorder>("a", Recorder::Options{.once = once});
  }

  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>("a");
};

TEST_F(ReplayTest, AnOffsetThatIsSetBackBySqlIsReplayedWithItsIdempotencyKeysCleared) {
  recorder = counting(outbox::Once::event);
  append(10);
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(keys(), numbers(1, 10));
  set_offset(6);
  ASSERT_TRUE(await([&] { return effects("a").size() == 14; }));
  EXPECT_EQ(effects("a"), (Seqs{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 7, 8, 9, 10}));
  EXPECT_EQ(keys(), numbers(1, 10));
  EXPECT_EQ(offset("a"), 10);
}

TEST_F(ReplayTest, TheKeysOfTheRepeatedRangeAreGoneTheMomentTheOffsetIsSetBack) {
  recorder = counting(outbox::Once::event);
  append(10);
  {
    Instance instance(*db, recorder);
    await_end("a");
  }
  set_offset(6);
  EXPECT_EQ(keys(), numbers(1, 6));
  set_offset(8);
  EXPECT_EQ(keys(), numbers(1, 6));
}

TEST_F(ReplayTest, AnOffsetThatIsSetForwardBySqlPassesOverRowsEvenInTheMiddleOfABatch) {
  append(40);
  std::atomic<bool> is_first = true;
  recorder->after([&](const outbox::Work&) {
    if (is_first.exchange(false)) {
      SqlSession(db->url()).run("UPDATE cn_relay.consumer_offsets SET last_seq = 30 WHERE consumer = 'a'");
    }
  });
  Instance instance(*db, recorder);
  await_end("a");
  EXPECT_EQ(effects("a"), numbers(31, 40));
}

TEST_F(ReplayTest, AReplayDuringLoadRepeatsItsRangeExactlyOnce) {
  recorder = counting(outbox::Once::row);
  append(30);
  Instance instance(*db, recorder);
  await_end("a");
  auto writer = std::async(std::launch::async, [this] {
    SqlSession session(db->url());
    for (int i = 0; i < 50; ++i) session.run("SELECT append(3)");
  });
  ASSERT_TRUE(replay({10, {}}));
  writer.get();
  await_end("a");
  // Everything up to where it stood, then everything from 11 on.
  const auto all = effects("a");
  const auto turn = std::adjacent_find(all.begin(), all.end(), std::greater<>());
  ASSERT_NE(turn, all.end());
  EXPECT_EQ(Seqs(all.begin(), turn + 1), numbers(1, *turn));
  EXPECT_EQ(Seqs(turn + 1, all.end()), numbers(11, 180));
}

TEST_F(ReplayTest, AReplayFromAMomentRepeatsWhatWasWrittenSince) {
  append(10);
  sql.run("UPDATE cn_relay.events_outbox SET appended_at = to_timestamp(1000000 + seq)");
  Instance instance(*db, recorder);
  await_end("a");
  const auto from = replay({{}, 1'000'008.0});
  ASSERT_TRUE(from);
  EXPECT_EQ(from->value, 7);
  ASSERT_TRUE(await([&] { return effects("a").size() == 13; }));
  EXPECT_EQ(effects("a"), (Seqs{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8, 9, 10}));
  const auto future = replay({{}, 2'000'000.0});
  ASSERT_TRUE(future);
  EXPECT_EQ(future->value, 10);
}

TEST_F(ReplayTest, AReplayOfWhatRetentionHasTakenIsRefusedAndPointsToTheRebuild) {
  append(10);
  add_offset("a", 10);
  sql.run("UPDATE cn_relay.log_floor SET dropped_until = 4");
  for (const auto& point : {outbox::ReplayPoint{3, {}}, outbox::ReplayPoint{{}, 1.0}}) {
    const auto refused = replay(point);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("up to seq 4"));
    EXPECT_THAT(refused.error().message, HasSubstr("todoke consumers rebuild a"));
  }
  EXPECT_EQ(offset("a"), 10);
  ASSERT_TRUE(replay({4, {}}));
  EXPECT_EQ(offset("a"), 4);
  EXPECT_THAT(replay({11, {}}).error().message, HasSubstr("the log ends at seq 10"));
  sql.run("UPDATE cn_relay.consumer_offsets SET state = 'needs_rebuild'");
  EXPECT_THAT(replay({5, {}}).error().message, HasSubstr("todoke consumers rebuild a"));
}

TEST_F(ReplayTest, AReplayAlsoBringsBackWhatWasBuried) {
  append(5);
  std::atomic<bool> fails = true;
  recorder->before([&](const outbox::Work& work) {
    if (fails && has_seq(work, 4)) throw std::runtime_error("poison");
  });
  Instance instance(*db, recorder);
  await_end("a");
  fails = false;
  ASSERT_TRUE(replay({2, {}}));
  await_true("SELECT count(*) = 7 FROM effects");
  EXPECT_EQ(effects("a"), (Seqs{1, 2, 3, 5, 3, 4, 5}));
  EXPECT_EQ(number("SELECT count(*) FROM cn_relay.consumer_dead_letters"), 0);
}

TEST_F(ReplayTest, ClaimGivesAnEventOnceHoweverManyRowsNameIt) {
  recorder = counting(outbox::Once::event);
  append(2);
  append_row(1, "upsert", "kukuri:other");
  append_row(1, "delete", "kukuri:global", "nip09");
  Instance instance(*db, recorder);
  await_end("a");
  append_row(2, "upsert", "kukuri:other");
  await_end("a");
  EXPECT_EQ(effects("a"), (Seqs{1, 2}));
  EXPECT_EQ(sql.run("SELECT event_id, topic_id, op FROM cn_relay.consumer_effects ORDER BY seq"),
            (Rows{id_of(1) + "||", id_of(2) + "||"}));
}

TEST_F(ReplayTest, ClaimGivesEachTopicAndOpOfAnEventOnce) {
  recorder = counting(outbox::Once::row);
  append(1);
  append_row(1, "upsert", "kukuri:other");
  append_row(1, "upsert", "kukuri:other");
  append_row(1, "delete", "kukuri:other", "nip09");
  Instance instance(*db, recorder);
  await_end("a");
  append_row(1, "upsert", "kukuri:global");
  append_row(1, "delete", "kukuri:global", "nip09");
  await_end("a");
  EXPECT_EQ(effects("a"), (Seqs{1, 2, 4, 6}));
}

TEST_F(ReplayTest, KeysOfOneConsumerAreNotThoseOfAnother) {
  append(3);
  Instance one(*db, counting(outbox::Once::event));
  Instance two(*db, std::make_shared<Recorder>("b", Recorder::Options{.once = outbox::Once::event}));
  await_end("a");
  await_end("b");
  EXPECT_EQ(effects("a"), numbers(1, 3));
  EXPECT_EQ(effects("b"), numbers(1, 3));
  set_offset(0);
  await_true("SELECT count(*) = 6 FROM effects WHERE consumer = 'a'");
  EXPECT_EQ(number("SELECT count(*) FROM cn_relay.consumer_effects WHERE consumer = 'b'"), 3);
}

}  // namespace
}  // namespace todoke::test
