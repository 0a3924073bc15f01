#include "relay/batch_plan.hpp"

#include <map>
#include <ostream>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nostr/tag_keys.hpp"
#include "relay/test_support.hpp"

namespace todoke::relay {

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << "outcome " << static_cast<int>(outcome);
}

namespace test {
namespace {

using nostr::EventId;

// What store.sql does, in memory: one event after the other, or a batch at once. At once means that no part
// sees what another part does, and what Postgres refuses (one row written twice by one statement) throws.
class Model {
 public:
  Outcome take_one(const Incoming& incoming) { return take_together({incoming}).front(); }

  std::vector<Outcome> take_together(const std::vector<Incoming>& batch) {
    std::vector<Outcome> outcomes;
    for (const auto& incoming : batch) outcomes.push_back(verdict(incoming));
    std::vector<const Incoming*> deletions;
    std::set<std::string> keys;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (outcomes[i] != Outcome::stored) continue;
      write_once(keys, batch[i].effective_key);
      insert(batch[i]);
      deletions.push_back(&batch[i]);
    }
    apply(deletions);
    return outcomes;
  }

  // What others can see in the end. Of a deleted event it does not matter whether it had been replaced
  // before.
  struct State {
    std::map<EventId, std::string> events;
    std::map<std::string, std::pair<EventId, bool>> versions;
    std::set<std::pair<EventId, nostr::Pubkey>> id_tombs;
    std::map<std::string, std::int64_t> key_tombs;
    bool operator==(const State&) const = default;
  };
  [[nodiscard]] State state() const {
    State state{{}, {}, id_tombs_, key_tombs_};
    for (const auto& [id, row] : rows_) {
      state.events[id] = row.deleted ? "deleted" : row.superseded ? "superseded" : "in effect";
    }
    for (const auto& [key, version] : versions_)
      state.versions.emplace(key, std::pair(version.id, version.gone));
    return state;
  }

 private:
  struct Row {
    nostr::Pubkey author;
    nostr::Kind kind;
    std::string key;
    bool deleted = false;
    bool superseded = false;
  };
  struct Version {
    EventId id;
    std::int64_t created_at;
    bool gone = false;
  };

  static void write_once(std::set<std::string>& written, const std::string& key) {
    if (!key.empty() && !written.insert(key).second) throw std::logic_error("twice in one batch: " + key);
  }

  [[nodiscard]] Outcome verdict(const Incoming& incoming) const {
    const auto& event = *incoming.event;
    if (event.kind() != nostr::kDeletion && id_tombs_.contains({event.id(), event.pubkey()})) {
      return Outcome::deleted;
    }
    if (const auto tomb = key_tombs_.find(incoming.effective_key);
        tomb != key_tombs_.end() && tomb->second >= event.created_at()) {
      return Outcome::deleted;
    }
    if (const auto version = versions_.find(incoming.effective_key); version != versions_.end()) {
      const auto& there = version->second;
      const bool there_is_newer = there.created_at > event.created_at() ||
                                  (there.created_at == event.created_at() && there.id < event.id());
      if (there.id != event.id() && there_is_newer) return Outcome::newer_version;
    }
    return rows_.contains(event.id()) ? Outcome::duplicate : Outcome::stored;
  }

  void insert(const Incoming& incoming) {
    const auto& event = *incoming.event;
    const auto& key = incoming.effective_key;
    const Row row{event.pubkey(), event.kind(), key};
    if (!rows_.emplace(event.id(), row).second) throw std::logic_error("an event was stored twice");
    if (key.empty()) return;
    const auto there = versions_.find(key);
    if (there != versions_.end() && !there->second.gone) rows_.at(there->second.id).superseded = true;
    versions_.insert_or_assign(key, Version{event.id(), event.created_at()});
  }

  void apply(const std::vector<const Incoming*>& deletions) {
    std::set<EventId> hit;
    for (const auto* deletion : deletions) {
      for (const auto& id : deletion->targets.events) {
        const auto row = rows_.find(id);
        if (row == rows_.end() || row->second.author != deletion->event->pubkey()) continue;
        if (row->second.kind != nostr::kDeletion) hit.insert(id);
      }
      for (const auto& key : deletion->target_keys) {
        const auto version = versions_.find(key);
        if (version == versions_.end() || version->second.gone) continue;
        if (version->second.created_at <= deletion->event->created_at()) hit.insert(version->second.id);
      }
    }
    for (const auto& id : hit) {
      auto& row = rows_.at(id);
      row.deleted = true;
      const auto version = versions_.find(row.key);
      if (version != versions_.end() && version->second.id == id) version->second.gone = true;
    }
    std::set<std::string> keys;
    for (const auto* deletion : deletions) {
      for (const auto& id : deletion->targets.events) id_tombs_.emplace(id, deletion->event->pubkey());
      for (const auto& key : deletion->target_keys) {
        write_once(keys, key);
        auto& until = key_tombs_.try_emplace(key, deletion->event->created_at()).first->second;
        until = std::max(until, deletion->event->created_at());
      }
    }
  }

  std::map<EventId, Row> rows_;
  std::map<std::string, Version> versions_;
  std::set<std::pair<EventId, nostr::Pubkey>> id_tombs_;
  std::map<std::string, std::int64_t> key_tombs_;
};

// As admission makes it.
Incoming incoming_of(EventPtr event) {
  Incoming incoming;
  incoming.topics = {kTopicA};
  if (const auto address = nostr::address_of(*event)) incoming.effective_key = nostr::effective_key(*address);
  if (event->kind() == nostr::kDeletion) {
    incoming.targets = nostr::deletion_targets(*event);
    for (const auto& address : incoming.targets.addresses) {
      incoming.target_keys.push_back(nostr::effective_key(address));
    }
  }
  incoming.event = std::move(event);
  return incoming;
}

// Events of two authors with few keys, and requests that delete them, each other, and what is not there.
std::vector<Incoming> random_pool(Dice& dice) {
  const std::vector<nostr::SecretKey> keys{author(1), author(2)};
  const auto time = [&] { return kNow + static_cast<std::int64_t>(dice.below(4)); };
  const std::vector<nostr::Kind> kinds{1, 0, 10002, 30023, 30023};
  std::vector<Incoming> pool;
  const auto add = [&](nostr::Kind kind, Tags tags) {
    pool.push_back(
        incoming_of(event_of(dice.pick(keys), kind, std::move(tags), std::to_string(pool.size()), time())));
  };
  for (int i = 0; i < 30; ++i) {
    const auto kind = dice.pick(kinds);
    add(kind, kind == 30023 ? Tags{{"d", dice.percent(50) ? "x" : "y"}} : Tags{});
  }
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
    Model one_by_one;
    std::vector<Outcome> expected;
    for (const auto& incoming : arrivals) expected.push_back(one_by_one.take_one(incoming));

    Model batched;
    std::vector<Outcome> outcomes(arrivals.size(), Outcome::failed);
    std::deque<Incoming> queue;
    auto next = arrivals.begin();
    while (next != arrivals.end() || !queue.empty()) {
      for (auto left = dice.below(40); left > 0 && next != arrivals.end(); --left) queue.push_back(*next++);
      const auto events_max = dice.below(20) + 1;
      const bool had_some = !queue.empty();
      const auto batch = take_batch(queue, events_max);
      ASSERT_LE(batch.size(), events_max);
      ASSERT_EQ(batch.empty(), !had_some);
      largest = std::max(largest, batch.size());
      const auto together = batched.take_together(batch);
      for (std::size_t i = 0; i < batch.size(); ++i) outcomes[arrival_of(batch[i])] = together[i];
    }
    ASSERT_EQ(outcomes, expected);
    ASSERT_TRUE(batched.state() == one_by_one.state());
    for (const auto outcome : expected) ++seen[outcome];
  }
  for (const auto outcome : {Outcome::stored, Outcome::duplicate, Outcome::newer_version, Outcome::deleted}) {
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
  EXPECT_EQ(ids_of(take_batch(queue, 64)), ids_of(events));
  EXPECT_TRUE(queue.empty());
}

TEST(BatchPlan, TakesTheLimitAndLeavesTheRestInOrder) {
  const auto events = notes(5);
  std::deque<Incoming> queue(events.begin(), events.end());
  EXPECT_EQ(ids_of(take_batch(queue, 3)), ids_of(std::span(events).first(3)));
  EXPECT_EQ(ids_of(queue), ids_of(std::span(events).last(2)));
}

TEST(BatchPlan, WhatConflictsWithAnEventThatWasLeftIsLeftToo) {
  const auto target = notes(1).front();
  const auto deletion = incoming_of(event_of(author(1), nostr::kDeletion, {{"e", target.event->id().hex()}}));
  const auto other = incoming_of(
      event_of(author(1), nostr::kDeletion, {{"e", deletion.event->id().hex()}, {"e", id_of(7).hex()}}));
  const auto last = incoming_of(event_of(author(1), nostr::kDeletion, {{"e", id_of(7).hex()}}, "again"));
  std::deque<Incoming> queue{target, deletion, other, last};
  EXPECT_EQ(ids_of(take_batch(queue, 64)), ids_of(std::vector{target}));
  EXPECT_EQ(ids_of(take_batch(queue, 64)), ids_of(std::vector{deletion}));
  EXPECT_EQ(ids_of(take_batch(queue, 64)), ids_of(std::vector{other}));
  EXPECT_EQ(ids_of(take_batch(queue, 64)), ids_of(std::vector{last}));
}

TEST(BatchPlan, LooksPastConflictsButNotForEver) {
  const auto same = notes(1).front();
  const auto free = notes(2).back();
  std::deque<Incoming> near{same, same, same, free};
  EXPECT_EQ(ids_of(take_batch(near, 2)), ids_of(std::vector{same, free}));
  std::deque<Incoming> far(100, same);
  far.push_back(free);
  EXPECT_EQ(ids_of(take_batch(far, 2)), ids_of(std::vector{same}));
  EXPECT_EQ(far.size(), 100U);
}

}  // namespace
}  // namespace test
}  // namespace todoke::relay
