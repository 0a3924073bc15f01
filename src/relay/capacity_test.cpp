#include "relay/capacity.hpp"

#include <gtest/gtest.h>

namespace todoke::relay {
namespace {

TEST(Capacity, WhatCountsIsTheSmallerOfSizeAndNeed) {
  const CapacityLimits limits{.bytes_max = 1'600};
  // Fresh: the files are smaller than what is reckoned.
  EXPECT_EQ(share_in_use({.size = 800, .events = 1, .bytes = 1'000}, limits), 500);
  // After a purge: the files keep their size, and their free room is used again.
  EXPECT_EQ(share_in_use({.size = 5'000, .events = 1, .bytes = 500}, limits), 500);
}

TEST(Capacity, TheSearchIndexNeedsRoomToo) {
  EXPECT_EQ(bytes_needed({.size = 0, .events = 1, .bytes = 1'000}, false), 1'600);
  EXPECT_EQ(bytes_needed({.size = 0, .events = 1, .bytes = 1'000}, true), 2'500);
}

TEST(Capacity, WhatOutlivesTheEventsNeedsRoomTooAndNoPurgeFreesIt) {
  const DatabaseUse use{.size = 10'000, .events = 2, .bytes = 1'000, .kept = 400, .marks = 300};
  EXPECT_EQ(bytes_needed(use, false), 1'900);
  EXPECT_EQ(bytes_that_stay(use, false), 940);
  EXPECT_EQ(share_in_use(use, {.bytes_max = 1'900}), 1'000);
}

TEST(Capacity, AFullNodeSaysWhatNoPurgeFrees) {
  constexpr std::int64_t kMiB = 1 << 20;
  const DatabaseUse use{.size = 500 * kMiB, .events = 7, .bytes = 0, .kept = 0, .marks = 100 * kMiB};
  const CapacityLimits limits{.bytes_max = 100 * kMiB, .keep_days = 3};
  EXPECT_EQ(capacity_text(use, limits, false), "100.0 % in use: 100 of 100 MiB, 7 events");
  EXPECT_EQ(
      capacity_text(use, limits, true),
      "100.0 % in use: 100 of 100 MiB, 7 events; nothing older than 3 days is left, events are refused; "
      "100 MiB are kept events, versions, ids and tombstones, which no purge frees");
  EXPECT_EQ(capacity_text(use, {}, false), "");
}

TEST(Capacity, TheLimitThatIsNearerCounts) {
  const CapacityLimits limits{.bytes_max = 1'000, .events_max = 100};
  EXPECT_EQ(share_in_use({.size = 200, .events = 90, .bytes = 1'000}, limits), 900);
  EXPECT_EQ(share_in_use({.size = 950, .events = 90, .bytes = 10'000}, limits), 950);
  EXPECT_EQ(share_in_use({.size = 950, .events = 90, .bytes = 10'000}, {}), 0);
}

TEST(Capacity, ATopicLosesWhatItHasTooMuch) {
  EXPECT_EQ(events_to_drop({100, 1'000}, {.events_max = 90}), 10);
  EXPECT_EQ(events_to_drop({100, 1'000}, {.bytes_max = 805}), 20);  // 10 bytes each
  EXPECT_EQ(events_to_drop({100, 1'000}, {.events_max = 90, .bytes_max = 805}), 20);
  EXPECT_EQ(events_to_drop({100, 1'000}, {.events_max = 100, .bytes_max = 1'000}), 0);
  EXPECT_EQ(events_to_drop({0, 0}, {.events_max = 5}), 0);
}

}  // namespace
}  // namespace todoke::relay
