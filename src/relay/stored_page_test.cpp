#include "relay/stored_page.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using nostr::Seq;
using Order = StoredPage::Order;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t kPlenty = 1'000'000;

LiveEventPtr live_of(const EventPtr& event, std::int64_t seq = 1) {
  return std::make_shared<const LiveEvent>(LiveEvent{event, Seq{seq}, {}, false, {kTopicA}});
}
LiveEventPtr at_time(std::int64_t created_at, std::int64_t seq = 1, std::size_t bytes = 0) {
  return live_of(event_of(author(1), 1, {}, std::string(bytes, '.'), created_at), seq);
}

TEST(StoredPage, EqualEventsAreOneEvenIfTheyAreNotTheSameObject) {
  const auto event = event_of(author(1), 1, {});
  for (const auto order : {Order::newest_first, Order::by_seq, Order::as_added}) {
    StoredPage page(order, kPlenty);
    EXPECT_TRUE(page.add(live_of(event)));
    EXPECT_TRUE(page.add(live_of(event)));
    EXPECT_EQ(page.events().size(), 1U);
    EXPECT_FALSE(page.more());
  }
}

TEST(StoredPage, OrderDoesNotDependOnWhatWasAddedFirst) {
  const auto a = at_time(kNow, 3);
  const auto b = at_time(kNow - 1, 1);
  const auto c = at_time(std::numeric_limits<std::int64_t>::min(), 2);
  StoredPage by_time(Order::newest_first, kPlenty);
  StoredPage by_seq(Order::by_seq, kPlenty);
  StoredPage as_added(Order::as_added, kPlenty);
  for (auto* page : {&by_time, &by_seq, &as_added}) {
    for (const auto& live : {b, c, a, b}) page->add(live);
  }
  EXPECT_THAT(by_time.events(), ElementsAre(a, b, c));
  EXPECT_THAT(by_seq.events(), ElementsAre(b, c, a));
  EXPECT_THAT(as_added.events(), ElementsAre(b, c, a));
}

TEST(StoredPage, OneEventFitsInAnyCase) {
  StoredPage page(Order::newest_first, 10);
  const auto older = at_time(kNow);
  EXPECT_TRUE(page.add(older));
  EXPECT_FALSE(page.more());
  const auto newer = at_time(kNow + 1);
  EXPECT_TRUE(page.add(newer));
  EXPECT_THAT(page.events(), ElementsAre(newer));
  EXPECT_TRUE(page.more());
  EXPECT_FALSE(page.add(older)) << "the page ends before it";
  EXPECT_EQ(page.oldest(), kNow);
}

TEST(StoredPage, LimitOfAFilterHidesWhatTheLogNamedLater) {
  StoredPage page(Order::by_seq, kPlenty);
  for (std::int64_t seq = 1; seq <= 9; ++seq) page.add(at_time(kNow, seq, static_cast<std::size_t>(seq)));
  page.cut_after(Seq{4});
  EXPECT_EQ(page.events().size(), 4U);
  EXPECT_TRUE(page.more());
  page.cut_after(Seq{6});
  EXPECT_FALSE(page.add(at_time(kNow, 5)));
  page.cut_after(Seq{0});
  EXPECT_THAT(page.events(), IsEmpty());
}

// Whatever is added in whatever order: the longest run from the front that fits.
TEST(StoredPage, HoldsTheFirstThatFitWithoutAGap) {
  for (const auto seed : seeds(200)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    const auto bytes_max = 500 + dice.below(5'000);
    StoredPage page(Order::newest_first, bytes_max);
    std::vector<LiveEventPtr> all;
    for (std::size_t filters = 1 + dice.below(4); filters > 0; --filters) {
      // A filter gives its events newest first and stops when the page has no place for more.
      auto time = kNow + static_cast<std::int64_t>(dice.below(10));
      bool goes_on = true;
      for (std::size_t left = dice.below(12); left > 0; --left) {
        all.push_back(at_time(time, 1, dice.below(700)));
        if (goes_on) goes_on = page.add(all.back());
        time -= 1 + static_cast<std::int64_t>(dice.below(3));
      }
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return place_by_time(*a->event) < place_by_time(*b->event);
    });
    std::vector<LiveEventPtr> wanted;
    std::size_t bytes = 0;
    for (const auto& live : all) {
      if (!wanted.empty() && live->event->id() == wanted.back()->event->id()) continue;
      bytes += live->event->json().size();
      if (bytes > bytes_max && !wanted.empty()) break;
      wanted.push_back(live);
    }
    const auto held = page.events();
    ASSERT_EQ(held.size(), wanted.size());
    for (std::size_t i = 0; i < held.size(); ++i) ASSERT_EQ(held[i]->event->id(), wanted[i]->event->id());
  }
}

}  // namespace
}  // namespace todoke::relay::test
