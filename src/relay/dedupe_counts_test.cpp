#include "relay/dedupe_counts.hpp"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

struct DedupeCountsTest : testing::Test {
  metrics::Registry registry;
  const SystemTime start = SystemTime(std::chrono::seconds(kNow));

  static std::map<std::string, std::int64_t> hits_of(const DedupeCounts::Counted& counted) {
    std::map<std::string, std::int64_t> hits;
    for (std::size_t i = 0; i < counted.ids.size(); ++i) hits[counted.ids[i]] = counted.hits[i];
    return hits;
  }
  [[nodiscard]] std::uint64_t dropped() {
    return registry.counter("todoke_dedupe_counts_dropped_total", "Dropped.").value();
  }
};

TEST_F(DedupeCountsTest, CountsEachIdAndKeepsTheLatestTime) {
  DedupeCounts counts(registry);
  counts.hit(id_of(1), start + std::chrono::seconds(5));
  counts.hit(id_of(1), start);  // threads may come in another order than their times
  counts.hit(id_of(2), start);
  const auto counted = counts.take_counted();
  EXPECT_THAT(hits_of(counted), UnorderedElementsAre(Pair(id_of(1).hex(), 2), Pair(id_of(2).hex(), 1)));
  const auto first = std::find(counted.ids.begin(), counted.ids.end(), id_of(1).hex()) - counted.ids.begin();
  EXPECT_EQ(counted.last_seen[static_cast<std::size_t>(first)], start + std::chrono::seconds(5));
}

TEST_F(DedupeCountsTest, WhatWasTakenIsNotCountedAgain) {
  DedupeCounts counts(registry);
  counts.hit(id_of(1), start);
  counts.take_counted();
  EXPECT_THAT(counts.take_counted().ids, IsEmpty());
  counts.hit(id_of(1), start);
  EXPECT_THAT(hits_of(counts.take_counted()), UnorderedElementsAre(Pair(id_of(1).hex(), 1)));
}

TEST_F(DedupeCountsTest, WhatIsPutBackAddsToWhatCameMeanwhile) {
  DedupeCounts counts(registry);
  counts.hit(id_of(1), start);
  counts.hit(id_of(1), start);
  const auto failed = counts.take_counted();
  counts.hit(id_of(1), start + std::chrono::seconds(1));
  counts.hit(id_of(2), start);
  counts.put_back(failed);
  const auto counted = counts.take_counted();
  EXPECT_THAT(hits_of(counted), UnorderedElementsAre(Pair(id_of(1).hex(), 3), Pair(id_of(2).hex(), 1)));
  const auto first = std::find(counted.ids.begin(), counted.ids.end(), id_of(1).hex()) - counted.ids.begin();
  EXPECT_EQ(counted.last_seen[static_cast<std::size_t>(first)], start + std::chrono::seconds(1));
}

TEST_F(DedupeCountsTest, AsksForAFlushAtHalfAndDropsNewIdsWhenFull) {
  DedupeCounts counts(registry, 4);
  counts.hit(id_of(1), start);
  EXPECT_FALSE(counts.is_half_full());
  counts.hit(id_of(2), start);
  EXPECT_TRUE(counts.is_half_full());
  counts.hit(id_of(3), start);
  counts.hit(id_of(4), start);
  EXPECT_EQ(dropped(), 0U);
  counts.hit(id_of(5), start);
  EXPECT_EQ(dropped(), 1U);
  counts.hit(id_of(1), start);  // known ones are counted on
  EXPECT_EQ(dropped(), 1U);
  EXPECT_THAT(hits_of(counts.take_counted()),
              UnorderedElementsAre(Pair(id_of(1).hex(), 2), Pair(id_of(2).hex(), 1), Pair(id_of(3).hex(), 1),
                                   Pair(id_of(4).hex(), 1)));
}

TEST_F(DedupeCountsTest, WhatHasNoRoomToBePutBackIsCountedAsDropped) {
  DedupeCounts counts(registry, 1);
  counts.hit(id_of(1), start);
  counts.hit(id_of(1), start);
  const auto failed = counts.take_counted();
  counts.hit(id_of(2), start);
  counts.put_back(failed);
  EXPECT_EQ(dropped(), 2U);
  EXPECT_THAT(hits_of(counts.take_counted()), UnorderedElementsAre(Pair(id_of(2).hex(), 1)));
}

}  // namespace
}  // namespace todoke::relay::test
