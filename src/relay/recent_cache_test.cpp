#include "relay/recent_cache.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using nostr::Filter;
using nostr::Seq;

bool is_newer(const LiveEventPtr& a, const LiveEventPtr& b) {
  if (a->event->created_at() != b->event->created_at())
    return a->event->created_at() > b->event->created_at();
  return a->event->id() < b->event->id();
}

LiveEventPtr live_of(EventPtr event, std::int64_t seq, std::vector<std::string> topics) {
  return std::make_shared<const LiveEvent>(
      LiveEvent{std::move(event), Seq{seq}, {}, false, std::move(topics)});
}

struct Answer {
  std::vector<LiveEventPtr> events;
  bool more = false;
};

// Nothing: the cache can't tell.
std::optional<Answer> find_in(RecentCache& cache, const Filter& filter, std::size_t limit,
                              const Viewer& viewer, std::chrono::sys_seconds now, Seq head) {
  StoredPage page(StoredPage::Order::newest_first, 1'000'000);
  if (!cache.find(filter, limit, viewer, now, head, page)) return std::nullopt;
  return Answer{page.events(), page.more()};
}

std::chrono::sys_seconds at(std::int64_t time) {
  return std::chrono::sys_seconds(std::chrono::seconds(time));
}

Filter for_topic(const std::string& topic) {
  Filter filter;
  filter.tags.push_back({'t', nostr::SortedSet<std::string>({topic})});
  return filter;
}

// A log that grows, a relay that follows it some way behind, and windows that are filled from a store that is
// ahead of the relay.
class World {
 public:
  World(std::uint64_t seed, CacheLimits limits, nostr::TopicPolicy policy)
      : dice_(seed), limits_(limits), policy_(policy), cache_(limits, policy) {}

  void step() {
    const auto what = dice_.below(100);
    if (what < 35) return append();
    if (what < 45) return erase();
    if (what < 65) return follow();
    if (what < 72) return begin_fill();
    if (what < 80) return end_fill();
    find();
  }

  [[nodiscard]] std::size_t answered() const { return answered_; }
  [[nodiscard]] std::size_t unanswered() const { return unanswered_; }

 private:
  struct Entry {
    bool gone = false;
    LiveEventPtr live;
  };
  struct Fill {
    Filter window;
    std::uint64_t number;
    std::size_t begun_at;
  };

  void append() {
    std::vector<std::string> linked;
    Tags tags;
    for (const auto& topic : topics_) {
      if (!dice_.percent(45)) continue;
      linked.push_back(topic);
      tags.push_back({"t", topic});
    }
    if (linked.empty() && !is_open()) return;
    const auto time = kNow + static_cast<std::int64_t>(dice_.below(8));
    static constexpr nostr::Kind kKinds[] = {1, 1, 7, nostr::kGiftWrap};
    if (dice_.percent(50)) tags.push_back({"p", dice_.pick(keys_).pubkey().hex()});
    auto event = event_of(dice_.pick(keys_), kKinds[dice_.below(std::size(kKinds))], tags,
                          std::to_string(log_.size()) + std::string(dice_.below(200), '.'), time);
    LiveEvent live{std::move(event), Seq{static_cast<std::int64_t>(log_.size()) + 1}, {}, false, linked};
    if (dice_.percent(15)) live.expires_at = kNow + 5 + static_cast<std::int64_t>(dice_.below(10));
    live.non_public = dice_.percent(15);
    log_.push_back({false, std::make_shared<const LiveEvent>(std::move(live))});
  }

  void erase() {
    const auto there = in_effect(log_.size(), log_.size());
    if (!there.empty()) log_.push_back({true, dice_.pick(there)});
  }

  void follow() {
    for (auto left = dice_.below(6) + 1; left > 0 && followed_ < log_.size(); --left) {
      const auto& entry = log_[followed_++];
      if (entry.gone) {
        cache_.remove({entry.live->event->id(), entry.live->event->created_at()});
      } else {
        cache_.add(entry.live);
      }
    }
  }

  void begin_fill() {
    const auto window = cache_.wants(random_filter());
    if (window) fills_.push_back({*window, cache_.begin_fill(*window), log_.size()});
  }

  // The store was read at some moment since: first its head, then the events.
  void end_fill() {
    if (fills_.empty()) return;
    const auto which = fills_.begin() + static_cast<std::ptrdiff_t>(dice_.below(fills_.size()));
    const auto fill = std::move(*which);
    fills_.erase(which);
    if (dice_.percent(10)) return cache_.forget(fill.window, fill.number);
    const auto head = fill.begun_at + dice_.below(log_.size() - fill.begun_at + 1);
    const auto read_at = head + dice_.below(log_.size() - head + 1);
    ReadResult newest;
    newest.events = in_effect(head, read_at);
    std::erase_if(newest.events,
                  [&](const auto& live) { return !nostr::matches(fill.window, *live->event); });
    std::sort(newest.events.begin(), newest.events.end(), is_newer);
    newest.more = newest.events.size() > limits_.events_max;
    if (newest.more) newest.events.resize(limits_.events_max);
    cache_.fill(fill.window, fill.number, std::move(newest));
    read_at_ = std::max(read_at_, read_at);
  }

  Filter random_filter() {
    Filter filter;
    if (!is_open() || dice_.percent(40)) filter = for_topic(dice_.pick(topics_));
    if (dice_.percent(10) && !log_.empty()) {
      std::vector<nostr::EventId> ids;
      for (auto left = dice_.below(3); left > 0; --left) ids.push_back(dice_.pick(log_).live->event->id());
      filter.ids = nostr::SortedSet<nostr::EventId>(std::move(ids));
    }
    if (dice_.percent(20)) filter.kinds = nostr::SortedSet<nostr::Kind>({1});
    if (dice_.percent(20)) filter.authors = nostr::SortedSet<nostr::Pubkey>({keys_[0].pubkey()});
    if (dice_.percent(20)) filter.since = kNow + static_cast<std::int64_t>(dice_.below(8));
    if (dice_.percent(20)) filter.until = kNow + static_cast<std::int64_t>(dice_.below(8));
    return filter;
  }

  // A gift wrap for others.
  static bool is_hidden(const nostr::Event& event, const Viewer& viewer) {
    if (event.kind() != nostr::kGiftWrap) return false;
    return std::none_of(viewer.keys.begin(), viewer.keys.end(), [&](const auto& key) {
      return key == event.pubkey() || key.hex() == event.first_value("p");
    });
  }

  // The naive answer from these events.
  static Answer answer_from(std::vector<LiveEventPtr> events, const Filter& filter, std::size_t limit,
                            const Viewer& viewer, std::int64_t now) {
    std::erase_if(events, [&](const auto& live) {
      return !nostr::matches(filter, *live->event) || (live->non_public && viewer.keys.empty()) ||
             (live->expires_at && *live->expires_at <= now) || is_hidden(*live->event, viewer);
    });
    std::sort(events.begin(), events.end(), is_newer);
    const bool more = events.size() > limit;
    if (more) events.resize(limit);
    return {std::move(events), more};
  }

  void find() {
    const auto filter = random_filter();
    const auto limit = dice_.below(8);
    Viewer viewer;
    for (const auto& key : keys_) {
      if (dice_.percent(40)) viewer.keys.push_back(key.pubkey());
    }
    const auto now = kNow + static_cast<std::int64_t>(dice_.below(20));
    const Seq head{static_cast<std::int64_t>(followed_)};
    const auto answer = find_in(cache_, filter, limit, viewer, at(now), head);
    if (!answer) {
      ++unanswered_;
      return;
    }
    ++answered_;
    // A window may know already that an event is gone, where the relay has not come so far in the log.
    const auto known = in_effect(followed_, followed_);
    const auto all = answer_from(known, filter, limit, viewer, now);
    const auto still = in_effect(followed_, std::max(followed_, read_at_));
    auto seen = known;
    std::erase_if(seen, [&](const auto& live) {
      const bool may_be_missing = std::find(still.begin(), still.end(), live) == still.end();
      return may_be_missing &&
             std::find(answer->events.begin(), answer->events.end(), live) == answer->events.end();
    });
    const auto expected = answer_from(seen, filter, limit, viewer, now);
    ASSERT_EQ(answer->events, expected.events);
    ASSERT_TRUE(answer->more == expected.more || answer->more == all.more);
  }

  // Of the first `added` entries of the log, what the first `gone` entries leave in effect.
  [[nodiscard]] std::vector<LiveEventPtr> in_effect(std::size_t added, std::size_t gone) const {
    std::set<const LiveEvent*> went;
    for (std::size_t i = 0; i < gone; ++i) {
      if (log_[i].gone) went.insert(log_[i].live.get());
    }
    std::vector<LiveEventPtr> events;
    for (std::size_t i = 0; i < added; ++i) {
      if (!log_[i].gone && !went.contains(log_[i].live.get())) events.push_back(log_[i].live);
    }
    return events;
  }

  [[nodiscard]] bool is_open() const { return policy_ == nostr::TopicPolicy::open; }

  Dice dice_;
  CacheLimits limits_;
  nostr::TopicPolicy policy_;
  RecentCache cache_;
  const std::vector<std::string> topics_{kTopicA, kTopicB, kTopicC};
  const std::vector<nostr::SecretKey> keys_{author(1), author(2)};
  std::vector<Entry> log_;    // the seq of an entry is its place, from 1 on
  std::size_t followed_ = 0;  // entries that the cache was told of
  std::size_t read_at_ = 0;   // entries that a window may know of
  std::vector<Fill> fills_;   // under way
  std::size_t answered_ = 0;
  std::size_t unanswered_ = 0;
};

struct RecentCacheWorld : testing::TestWithParam<nostr::TopicPolicy> {};

INSTANTIATE_TEST_SUITE_P(Policies, RecentCacheWorld,
                         testing::Values(nostr::TopicPolicy::topics, nostr::TopicPolicy::open),
                         [](const auto& param) {
                           return param.param == nostr::TopicPolicy::open ? "Open" : "Topics";
                         });

TEST_P(RecentCacheWorld, SaysNothingOrExactlyTheRightAnswer) {
  const std::vector<CacheLimits> limits{
      {3, 1'000, 1'000'000}, {3, 8, 1'000'000}, {2, 8, 1'000'000}, {3, 16, 8'000}, {1, 4, 1'000'000}};
  std::size_t answered = 0;
  std::size_t unanswered = 0;
  for (const auto seed : seeds(50)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed, limits[seed % limits.size()], GetParam());
    for (int step = 0; step < 400 && !testing::Test::HasFatalFailure(); ++step) world.step();
    if (testing::Test::HasFatalFailure()) return;
    answered += world.answered();
    unanswered += world.unanswered();
  }
  EXPECT_GT(answered, unanswered / 10) << "a cache that never knows would pass the rest";
}

struct RecentCacheTest : testing::Test {
  static LiveEventPtr make(std::int64_t seq, const std::string& topic, std::size_t bytes = 10) {
    return live_of(event_of(author(1), 1, {{"t", topic}}, std::string(bytes, '.'), kNow + seq), seq, {topic});
  }
  static void fill(RecentCache& cache, const std::string& topic, std::vector<LiveEventPtr> newest = {},
                   bool more = false) {
    ReadResult result;
    result.events = std::move(newest);
    result.more = more;
    cache.fill(for_topic(topic), cache.begin_fill(for_topic(topic)), std::move(result));
  }
  static bool answers(RecentCache& cache, const std::string& topic) {
    return find_in(cache, for_topic(topic), 10, {}, at(kNow), Seq{1'000}).has_value();
  }
};

TEST_F(RecentCacheTest, ATopicThatNobodyAskedForCostsNothing) {
  RecentCache cache({}, nostr::TopicPolicy::topics);
  cache.add(make(1, kTopicA));
  EXPECT_TRUE(cache.wants(for_topic(kTopicA)).has_value());
  EXPECT_FALSE(answers(cache, kTopicA));
}

TEST_F(RecentCacheTest, KnowsOnlyPlainQuestionsForOneTopic) {
  RecentCache cache({}, nostr::TopicPolicy::topics);
  fill(cache, kTopicA);
  fill(cache, kTopicB);
  EXPECT_TRUE(answers(cache, kTopicA));
  const auto asks = [&](const Filter& filter) {
    return find_in(cache, filter, 10, {}, at(kNow), Seq{1'000}).has_value();
  };
  auto several = for_topic(kTopicA);
  several.tags.front().values = nostr::SortedSet<std::string>({kTopicA, kTopicB});
  EXPECT_FALSE(asks(several));
  auto by_id = for_topic(kTopicA);
  by_id.ids = nostr::SortedSet<nostr::EventId>({id_of(1)});
  EXPECT_FALSE(asks(by_id)) << "nobody knows whether it is stored";
  auto by_seq = for_topic(kTopicA);
  by_seq.seq_after = Seq{0};
  EXPECT_FALSE(asks(by_seq));
  EXPECT_FALSE(asks(Filter{}));
}

TEST_F(RecentCacheTest, WhatIsInAWindowIsFoundByItsId) {
  RecentCache cache({}, nostr::TopicPolicy::topics);
  const auto one = make(1, kTopicA);
  const auto two = make(2, kTopicA);
  fill(cache, kTopicA, {two, one}, true);
  const auto find = [&](std::size_t limit, const std::string& topic, std::vector<nostr::EventId> ids) {
    auto filter = for_topic(topic);
    filter.ids = nostr::SortedSet<nostr::EventId>(std::move(ids));
    return find_in(cache, filter, limit, {}, at(kNow), Seq{1'000});
  };
  const auto both = find(5, kTopicA, {one->event->id(), two->event->id()});
  ASSERT_TRUE(both.has_value());
  EXPECT_EQ(both->events, (std::vector{two, one}));
  EXPECT_FALSE(both->more);
  const auto newest = find(1, kTopicA, {one->event->id(), two->event->id()});
  ASSERT_TRUE(newest.has_value());
  EXPECT_EQ(newest->events, (std::vector{two}));
  EXPECT_TRUE(newest->more);
  EXPECT_THAT(find(5, kTopicB, {one->event->id()})->events, testing::IsEmpty()) << "it has no link to B";
  EXPECT_FALSE(find(5, kTopicA, {one->event->id(), id_of(3)}).has_value());
  cache.remove({one->event->id(), one->event->created_at()});
  EXPECT_FALSE(find(5, kTopicA, {one->event->id()}).has_value());
}

TEST_F(RecentCacheTest, APlainRelayFillsAWindowWhenItIsAskedForAgain) {
  RecentCache cache({}, nostr::TopicPolicy::open);
  Filter by_author;
  by_author.authors = nostr::SortedSet<nostr::Pubkey>({author(1).pubkey()});
  auto narrower = by_author;
  narrower.kinds = nostr::SortedSet<nostr::Kind>({1});
  EXPECT_FALSE(cache.wants(narrower).has_value());
  EXPECT_EQ(cache.wants(narrower), by_author);
  EXPECT_FALSE(cache.wants(Filter{}).has_value());
  EXPECT_EQ(cache.wants(Filter{}), Filter{});
}

TEST_F(RecentCacheTest, TheNarrowestWindowThatIsThereAnswers) {
  RecentCache cache({}, nostr::TopicPolicy::open);
  ReadResult all;
  all.events = {make(2, kTopicA), make(1, kTopicB)};
  all.more = true;
  cache.fill({}, cache.begin_fill({}), all);
  const auto ask = [&](std::size_t limit) {
    return find_in(cache, for_topic(kTopicA), limit, {}, at(kNow), Seq{9});
  };
  EXPECT_TRUE(ask(0).has_value());
  EXPECT_FALSE(ask(2).has_value()) << "there may be older ones";
  fill(cache, kTopicA, {all.events.front()});
  ASSERT_TRUE(ask(2).has_value());
  EXPECT_EQ(ask(2)->events, (std::vector{all.events.front()}));
}

TEST_F(RecentCacheTest, TheWindowUnusedForLongestGoes) {
  RecentCache cache({2, 10, 1'000'000}, nostr::TopicPolicy::topics);
  fill(cache, kTopicA);
  fill(cache, kTopicB);
  EXPECT_TRUE(answers(cache, kTopicA));
  fill(cache, kTopicC);
  EXPECT_TRUE(answers(cache, kTopicA));
  EXPECT_TRUE(cache.wants(for_topic(kTopicB)).has_value());
  EXPECT_TRUE(answers(cache, kTopicC));
}

TEST_F(RecentCacheTest, BytesAreBoundedAndGivenBack) {
  RecentCache cache({3, 1'000, 20'000}, nostr::TopicPolicy::topics);
  std::int64_t seq = 0;
  for (int round = 0; round < 20; ++round) {
    for (const auto& topic : {kTopicA, kTopicB, kTopicC}) {
      if (cache.wants(for_topic(topic)).has_value()) fill(cache, topic, {make(++seq, topic, 3'000)});
    }
    cache.add(make(++seq, kTopicA, 3'000));
    const auto gone = make(++seq, kTopicB, 3'000);
    cache.add(gone);
    cache.remove({gone->event->id(), gone->event->created_at()});
  }
  std::size_t bytes = 0;
  for (const auto& topic : {kTopicA, kTopicB, kTopicC}) {
    const auto answer = find_in(cache, for_topic(topic), 1'000, {}, at(kNow), Seq{seq});
    if (!answer) continue;
    for (const auto& live : answer->events) bytes += live->event->json().size();
  }
  EXPECT_LE(bytes, 20'000U);
  cache.clear();
  fill(cache, kTopicA, {make(++seq, kTopicA, 3'000)});
  EXPECT_TRUE(answers(cache, kTopicA)) << "what was dropped does not count any more";
}

TEST_F(RecentCacheTest, WindowsThatHoldNothingOfWhatWasPurgedStay) {
  RecentCache cache({3, 10, 1'000'000}, nostr::TopicPolicy::topics);
  fill(cache, kTopicA, {make(9, kTopicA), make(5, kTopicA)});
  fill(cache, kTopicB, {make(8, kTopicB), make(4, kTopicB)});
  const auto number = cache.begin_fill(for_topic(kTopicC));
  cache.forget_up_to(Seq{4});
  EXPECT_TRUE(answers(cache, kTopicA));
  EXPECT_FALSE(answers(cache, kTopicB));
  // What was read before may name what was purged.
  cache.fill(for_topic(kTopicC), number, {});
  EXPECT_FALSE(answers(cache, kTopicC));
}

TEST_F(RecentCacheTest, NoBytesMeansNoCache) {
  RecentCache cache({10, 10, 0}, nostr::TopicPolicy::topics);
  EXPECT_FALSE(cache.wants(for_topic(kTopicA)).has_value());
}

TEST_F(RecentCacheTest, AWindowThatDeletionsHaveThinnedOutIsFilledAnew) {
  RecentCache cache({2, 10, 1'000'000}, nostr::TopicPolicy::topics);
  std::vector<LiveEventPtr> newest;
  for (std::int64_t seq = 20; seq > 10; --seq) newest.push_back(make(seq, kTopicA));
  fill(cache, kTopicA, newest, true);
  for (std::size_t i = 0; i < 6; ++i) cache.remove({newest[i]->event->id(), newest[i]->event->created_at()});
  EXPECT_FALSE(answers(cache, kTopicA)) << "there are older ones that it does not hold";
  EXPECT_TRUE(cache.wants(for_topic(kTopicA)).has_value());
}

TEST_F(RecentCacheTest, AReadThatBelongsToADroppedWindowIsNotTakenForItsSuccessor) {
  RecentCache cache({1, 10, 1'000'000}, nostr::TopicPolicy::topics);
  const auto old = make(1, kTopicA);
  const auto first = cache.begin_fill(for_topic(kTopicA));
  fill(cache, kTopicB);  // takes the only place
  cache.remove({old->event->id(), old->event->created_at()});
  const auto second = cache.begin_fill(for_topic(kTopicA));
  ReadResult before_the_deletion;
  before_the_deletion.events = {old};
  cache.fill(for_topic(kTopicA), first, std::move(before_the_deletion));
  EXPECT_FALSE(answers(cache, kTopicA));
  cache.fill(for_topic(kTopicA), second, {});
  const auto answer = find_in(cache, for_topic(kTopicA), 10, {}, at(kNow), Seq{1});
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(answer->events, testing::IsEmpty());
}

}  // namespace
}  // namespace todoke::relay::test
