#include "relay/batch_plan.hpp"

#include <map>
#include <ostream>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/store_model.hpp"
#include "relay/test_support.hpp"

namespace todoke::relay {

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << "outcome " << static_cast<int>(outcome);
}

namespace test {
namespace {

using nostr::EventId;

constexpr std::size_t kManyRows = 1'000'000;

std::size_t rows_of_batch(const std::vector<Incoming>& batch) {
  std::size_t rows = 0;
  for (const auto& incoming : batch) rows += incoming.rows;
  return rows;
}

// Events of two authors with few keys, and requests that delete them, each other, and what is not there.
std::vector<Incoming> random_pool(Dice& dice) {
  const std::vector<nostr::SecretKey> keys{author(1), author(2)};
  const auto time = [&] { return kNow + static_cast<std::int64_t>(dice.below(4)); };
  const std::vector<nostr::Kind> kinds{1, 0, 10002, 30023, 30023, nostr::kGiftWrap, nostr::kGiftWrap};
  std::vector<Incoming> pool;
  const auto add = [&](nostr::Kind kind, Tags tags) {
    pool.push_back(
        incoming_of(event_of(dice.pick(keys), kind, std::move(tags), std::to_string(pool.size()), time())));
  };
  for (int i = 0; i < 30; ++i) {
    const auto kind = dice.pick(kinds);
    Tags tags;
    if (kind == 30023) tags.push_back({"d", dice.percent(50) ? "x" : "y"});
    // Of other kinds the recipient has no say.
    if (dice.percent(60)) tags.push_back({"p", dice.pick(keys).pubkey().hex()});
    add(kind, tags);
  }
  if (dice.percent(50)) add(nostr::kVanish, {{"relay", "ALL_RELAYS"}});
  for (int i = 0; i < 15; ++i) {
    Tags tags;
    for (auto left = dice.below(3) + 1; left > 0; --left) {
      const auto& target = dice.pick(pool);
      if (!target.effective_key.empty() && dice.percent(40)) {
        tags.push_back({"a", target.effective_key});
      } else {
        tags.push_back({"e", target.event->id().hex()});
      }
    }
    add(nostr::kDeletion, tags);
  }
  return pool;
}

// Which of the arrivals an Incoming of a batch is; copies of one event are told apart by it.
SteadyTime mark(std::size_t arrival) {
  return SteadyTime(SteadyTime::duration(arrival));
}
std::size_t arrival_of(const Incoming& incoming) {
  return static_cast<std::size_t>(incoming.queued_at.time_since_epoch().count());
}

TEST(BatchPlan, BatchesHaveTheEffectOfTheEventsOneByOneInTheirOrder) {
  std::map<Outcome, int> seen;
  std::size_t largest = 0;
  for (const auto seed : seeds(40)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const auto pool = random_pool(dice);
    std::vector<Incoming> arrivals;
    for (std::size_t i = 0; i < 200; ++i) {
      arrivals.push_back(dice.pick(pool));
      arrivals.back().queued_at = mark(i);
    }
    StoreModel one_by_one;
    std::vector<Outcome> expected;
    for (const auto& incoming : arrivals) expected.push_back(one_by_one.take_one(incoming));

    StoreModel batched;
    std::vector<Outcome> outcomes(arrivals.size(), Outcome::failed);
    std::deque<Incoming> queue;
    auto next = arrivals.begin();
    while (next != arrivals.end() || !queue.empty()) {
      for (auto left = dice.below(40); left > 0 && next != arrivals.end(); --left) queue.push_back(*next++);
      const auto events_max = dice.below(20) + 1;
      const bool had_some = !queue.empty();
      const auto rows_max = dice.below(60) + 1;
      const auto batch = take_batch(queue, {events_max, rows_max});
      ASSERT_LE(batch.size(), events_max);
      ASSERT_TRUE(batch.size() < 2 || rows_of_batch(batch) <= rows_max);
      ASSERT_EQ(batch.empty(), !had_some);
      largest = std::max(largest, batch.size());
      const auto together = batched.take_together(batch);
      for (std::size_t i = 0; i < batch.size(); ++i) outcomes[arrival_of(batch[i])] = together[i];
    }
    ASSERT_EQ(outcomes, expected);
    ASSERT_TRUE(batched.state() == one_by_one.state());
    for (const auto outcome : expected) ++seen[outcome];
  }
  for (const auto outcome :
       {Outcome::stored, Outcome::duplicate, Outcome::newer_version, Outcome::deleted, Outcome::vanished}) {
    EXPECT_GT(seen[outcome], 0) << static_cast<int>(outcome);
  }
  EXPECT_GT(largest, 5U) << "batches must be worth their name";
}

std::vector<Incoming> notes(int count) {
  std::vector<Incoming> list;
  for (int i = 0; i < count; ++i) list.push_back(incoming_of(event_of(author(1), 1, {}, std::to_string(i))));
  return list;
}

std::vector<EventId> ids_of(const auto& list) {
  std::vector<EventId> ids;
  for (const auto& incoming : list) ids.push_back(incoming.event->id());
  return ids;
}

TEST(BatchPlan, EventsThatDoNotTouchEachOtherGoTogether) {
  const auto events = notes(20);
  std::deque<Incoming> queue(events.begin(), events.end());
  EXPECT_EQ(ids_of(take_batch(queue, {64, kManyRows})), ids_of(events));
  EXPECT_TRUE(queue.empty());
}

TEST(BatchPlan, TakesTheLimitAndLeavesTheRestInOrder) {
  const auto events = notes(5);
  std::deque<Incoming> queue(events.begin(), events.end());
  EXPECT_EQ(ids_of(take_batch(queue, {3, kManyRows})), ids_of(std::span(events).first(3)));
  EXPECT_EQ(ids_of(queue), ids_of(std::span(events).last(2)));
}

TEST(BatchPlan, WhatConflictsWithAnEventThatWasLeftIsLeftToo) {
  const auto target = notes(1).front();
  const auto deletion = incoming_of(event_of(author(1), nostr::kDeletion, {{"e", target.event->id().hex()}}));
  const auto other = incoming_of(
      event_of(author(1), nostr::kDeletion, {{"e", deletion.event->id().hex()}, {"e", id_of(7).hex()}}));
  const auto last = incoming_of(event_of(author(1), nostr::kDeletion, {{"e", id_of(7).hex()}}, "again"));
  std::deque<Incoming> queue{target, deletion, other, last};
  EXPECT_EQ(ids_of(take_batch(queue, {64, kManyRows})), ids_of(std::vector{target}));
  EXPECT_EQ(ids_of(take_batch(queue, {64, kManyRows})), ids_of(std::vector{deletion}));
  EXPECT_EQ(ids_of(take_batch(queue, {64, kManyRows})), ids_of(std::vector{other}));
  EXPECT_EQ(ids_of(take_batch(queue, {64, kManyRows})), ids_of(std::vector{last}));
}

TEST(BatchPlan, ADeletionByIdAndAVersionOfTheSameAuthorDoNotGoTogether) {
  const auto deletion = incoming_of(event_of(author(1), nostr::kDeletion, {{"e", id_of(7).hex()}}));
  const auto version = incoming_of(event_of(author(1), 0, {}));
  const auto of_another = incoming_of(event_of(author(2), 0, {}));
  std::deque<Incoming> queue{deletion, version, of_another};
  EXPECT_EQ(ids_of(take_batch(queue, {64, kManyRows})), ids_of(std::vector{deletion, of_another}));
  EXPECT_EQ(ids_of(take_batch(queue, {64, kManyRows})), ids_of(std::vector{version}));
  std::deque<Incoming> reverse{version, deletion};
  EXPECT_EQ(ids_of(take_batch(reverse, {64, kManyRows})), ids_of(std::vector{version}));
}

TEST(BatchPlan, ARequestToVanishGoesWithoutEventsOfItsAuthorAndGiftWrapsForThem) {
  const auto vanish = incoming_of(event_of(author(1), nostr::kVanish, {}));
  const auto of_author = incoming_of(event_of(author(1), 1, {}));
  const auto wrap = incoming_of(event_of(author(2), nostr::kGiftWrap, {{"p", author(1).pubkey().hex()}}));
  const auto mention = incoming_of(event_of(author(3), 1, {{"p", author(1).pubkey().hex()}}));
  const auto again = incoming_of(event_of(author(1), nostr::kVanish, {}, "again"));
  for (const auto& other : {of_author, wrap, again}) {
    std::deque<Incoming> queue{vanish, other, mention};
    EXPECT_EQ(ids_of(take_batch(queue, {64, kManyRows})), ids_of(std::vector{vanish, mention}));
    EXPECT_EQ(ids_of(queue), ids_of(std::vector{other}));
    std::deque<Incoming> reverse{other, vanish, mention};
    EXPECT_EQ(ids_of(take_batch(reverse, {64, kManyRows})), ids_of(std::vector{other, mention}));
  }
}

TEST(BatchPlan, LooksPastConflictsButNotForEver) {
  const auto same = notes(1).front();
  const auto free = notes(2).back();
  std::deque<Incoming> near{same, same, same, free};
  EXPECT_EQ(ids_of(take_batch(near, {2, kManyRows})), ids_of(std::vector{same, free}));
  std::deque<Incoming> far(100, same);
  far.push_back(free);
  EXPECT_EQ(ids_of(take_batch(far, {2, kManyRows})), ids_of(std::vector{same}));
  EXPECT_EQ(far.size(), 100U);
}

// An event of author `number` with `tags` rows of tags, and its own.
Incoming wide(int number, std::size_t tags) {
  Tags list;
  for (std::size_t i = 0; i < tags; ++i) list.push_back({"p", std::to_string(i)});
  return incoming_of(event_of(author(number), 1, std::move(list)));
}

TEST(BatchPlan, EndsBeforeItsRowsPassTheirBound) {
  const std::vector<Incoming> events{wide(1, 39), wide(2, 39), wide(3, 39), wide(4, 0)};
  std::deque<Incoming> queue(events.begin(), events.end());
  EXPECT_EQ(ids_of(take_batch(queue, {64, 100})), ids_of(std::span(events).first(2)));
  EXPECT_EQ(ids_of(take_batch(queue, {64, 100})), ids_of(std::span(events).last(2)));
}

TEST(BatchPlan, AnEventWithMoreRowsThanTheBoundGoesAlone) {
  const std::vector<Incoming> events{wide(1, 200), wide(2, 0)};
  std::deque<Incoming> queue(events.begin(), events.end());
  EXPECT_EQ(ids_of(take_batch(queue, {64, 100})), ids_of(std::span(events).first(1)));
  EXPECT_EQ(ids_of(take_batch(queue, {64, 100})), ids_of(std::span(events).last(1)));
}

TEST(BatchPlan, LooksAtBoundedRowsPastConflicts) {
  const auto same = wide(1, 99);
  const auto free = wide(2, 0);
  std::deque<Incoming> queue(10, same);
  queue.push_back(free);
  EXPECT_EQ(ids_of(take_batch(queue, {64, 200})), ids_of(std::vector{same}));
  EXPECT_EQ(queue.size(), 10U);
  EXPECT_EQ(ids_of(take_batch(queue, {64, 400})), ids_of(std::vector{same, free}));
}

}  // namespace
}  // namespace test
}  // namespace todoke::relay
