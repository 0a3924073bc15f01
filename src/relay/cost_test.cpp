#include "relay/cost.hpp"

#include <gtest/gtest.h>

#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

TEST(Cost, OrdinaryMessageCostsOneToken) {
  EXPECT_EQ(cost_of(0), 1);
  EXPECT_EQ(cost_of(kTokenBytes - 1, kTokenRows - 1), 1);
}

TEST(Cost, GrowsWithBytesAndRows) {
  EXPECT_EQ(cost_of(kTokenBytes), 2);
  EXPECT_EQ(cost_of(0, kTokenRows), 2);
  EXPECT_EQ(cost_of(4 * kTokenBytes, 3 * kTokenRows), 8);
}

TEST(Cost, FiltersOfAQuestionCost) {
  EXPECT_EQ(cost_of_question(100, 1), 1);
  EXPECT_EQ(cost_of_question(100, 4), 1);
  EXPECT_EQ(cost_of_question(100, 5), 2);
  EXPECT_EQ(cost_of_question(kTokenBytes, 20), 6);
}

TEST(Cost, OrdinaryPageIsInThePriceOfItsQuestion) {
  EXPECT_EQ(cost_of_page(0, 0), 0);
  EXPECT_EQ(cost_of_page(499, 200'000), 0);
  EXPECT_EQ(cost_of_page(500, 200'000), 1);
  EXPECT_EQ(cost_of_page(5'000, 2 * 1024 * 1024), 18);
  EXPECT_EQ(cost_of_count(49'999), 0);
  EXPECT_EQ(cost_of_count(1'000'000), 20);
}

TEST(Cost, RowsAreThoseOfTagsTopicsAndTargets) {
  const auto rows = [](nostr::Kind kind, Tags tags) {
    return rows_of(*event_of(author(1), kind, std::move(tags)));
  };
  EXPECT_EQ(rows(1, {}), 1U);
  EXPECT_EQ(rows(1, {{"p", "x"}, {"e", "x"}, {"long", "x"}, {}}), 3U);
  EXPECT_EQ(rows(1, {{"t", kTopicA}, {"t", kTopicB}}), 5U);
  EXPECT_EQ(rows(nostr::kDeletion, {{"e", id_of(1).hex()}, {"a", "30023:x:y"}, {"k", "1"}}), 6U);
  EXPECT_EQ(rows(20'000, {{"p", "x"}, {"t", kTopicA}}), 0U);
}

}  // namespace
}  // namespace todoke::relay::test
