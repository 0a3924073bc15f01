#include "relay/subscription_index.hpp"

#include <map>
#include <memory>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using nostr::Filter;

struct Sub {
  std::vector<Filter> filters;
};

// Few of each, so that filters and events meet.
struct IndexWorld {
  explicit IndexWorld(std::uint64_t seed) : dice(seed) {
    for (int i = 1; i <= 3; ++i) keys.push_back(author(i));
    for (int i = 0; i < 40; ++i) events.push_back(random_event());
  }

  EventPtr random_event() {
    Tags tags;
    for (auto left = dice.below(4); left > 0; --left) {
      auto& tag = tags.emplace_back();
      tag.push_back(dice.pick(names));
      if (dice.percent(90)) tag.push_back(dice.pick(values));
      if (dice.percent(20)) tag.emplace_back("more");
    }
    return event_of(dice.pick(keys), dice.pick(kinds), tags, std::to_string(dice.below(1'000'000)),
                    kNow + static_cast<std::int64_t>(dice.below(5)));
  }

  template <class Make>
  auto some(const Make& make) {
    using Value = decltype(make());
    std::vector<Value> list;
    for (auto left = dice.percent(10) ? 0 : dice.below(3) + 1; left > 0; --left) list.push_back(make());
    return nostr::SortedSet<Value>(std::move(list));
  }

  Filter random_filter() {
    Filter filter;
    if (dice.percent(15)) filter.ids = some([&] { return dice.pick(events)->id(); });
    if (dice.percent(25)) filter.authors = some([&] { return dice.pick(keys).pubkey(); });
    if (dice.percent(30)) filter.kinds = some([&] { return dice.pick(kinds); });
    for (const char letter : {'t', 'e', 'T'}) {
      if (dice.percent(20)) filter.tags.push_back({letter, some([&] { return dice.pick(values); })});
    }
    if (dice.percent(20)) filter.since = kNow + static_cast<std::int64_t>(dice.below(5));
    if (dice.percent(20)) filter.until = kNow + static_cast<std::int64_t>(dice.below(5));
    return filter;
  }

  std::unique_ptr<Sub> random_sub() {
    auto sub = std::make_unique<Sub>();
    for (auto left = dice.below(3) + 1; left > 0; --left) sub->filters.push_back(random_filter());
    return sub;
  }

  Dice dice;
  std::vector<nostr::SecretKey> keys;
  std::vector<EventPtr> events;
  std::vector<nostr::Kind> kinds{0, 1, 7, 30023};
  std::vector<std::string> names{"t", "e", "T", "alt", ""};
  std::vector<std::string> values{"", "a", "b", "a:b"};
};

TEST(SubscriptionIndex, FindsExactlyWhatTheFiltersMatchEachOnce) {
  std::size_t found = 0;
  for (const auto seed : seeds(30)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    IndexWorld world(seed);
    SubscriptionIndex<Sub> index;
    std::vector<std::unique_ptr<Sub>> subs;
    for (int step = 0; step < 200; ++step) {
      if (subs.empty() || world.dice.percent(30)) {
        subs.push_back(world.random_sub());
        index.add(subs.back().get(), subs.back()->filters);
      } else if (world.dice.percent(20)) {
        const auto at = subs.begin() + static_cast<std::ptrdiff_t>(world.dice.below(subs.size()));
        index.remove(at->get());
        subs.erase(at);
      }
      const auto& event = *world.dice.pick(world.events);
      std::multiset<const Sub*> visited;
      index.each_match(event, [&](Sub& sub) { visited.insert(&sub); });
      std::multiset<const Sub*> expected;
      for (const auto& sub : subs) {
        if (nostr::matches_any(sub->filters, event)) expected.insert(sub.get());
      }
      ASSERT_EQ(visited, expected) << event.json();
      found += visited.size();
    }
  }
  EXPECT_GT(found, 0U);
}

TEST(SubscriptionIndex, TwoSubscriptionsWithTheSameFilterAreIndependent) {
  IndexWorld world(1);
  Sub first{{Filter{}}};
  Sub second{{Filter{}}};
  SubscriptionIndex<Sub> index;
  index.add(&first, first.filters);
  index.add(&second, second.filters);
  index.remove(&first);
  std::vector<Sub*> visited;
  index.each_match(*world.events.front(), [&](Sub& sub) { visited.push_back(&sub); });
  EXPECT_THAT(visited, testing::ElementsAre(&second));
}

}  // namespace
}  // namespace todoke::relay::test
