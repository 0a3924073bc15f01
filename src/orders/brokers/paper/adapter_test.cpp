#include "orders/brokers/paper/adapter.hpp"

#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace todoke::orders {
namespace {

std::map<PaperAnswer, int> drawn(const PaperOptions& options) {
  std::map<PaperAnswer, int> counts;
  for (int i = 0; i < 10'000; ++i) ++counts[paper_answer(options, fmt::format("order-{}", i), 0)];
  return counts;
}

TEST(PaperAnswer, FillsEverythingUnlessConfiguredOtherwise) {
  EXPECT_EQ(drawn({}), (std::map<PaperAnswer, int>{{PaperAnswer::fill, 10'000}}));
}

TEST(PaperAnswer, DrawsFaultsByTheirShares) {
  PaperOptions options;
  options.reject_percent = 10;
  options.timeout_percent = 20;
  auto counts = drawn(options);
  EXPECT_NEAR(counts[PaperAnswer::timeout], 2'000, 300);
  EXPECT_NEAR(counts[PaperAnswer::reject], 800, 200);
}

TEST(PaperAnswer, IsTheSameForTheSameSeedAndAnotherForAnother) {
  PaperOptions one;
  one.lost_percent = 50;
  auto two = one;
  two.seed = 2;
  int different = 0;
  for (int i = 0; i < 100; ++i) {
    const auto key = fmt::format("order-{}", i);
    EXPECT_EQ(paper_answer(one, key, 3), paper_answer(one, key, 3));
    if (paper_answer(one, key, 3) != paper_answer(two, key, 3)) ++different;
  }
  EXPECT_GT(different, 20);
}

TEST(PaperAnswer, TheFirstTriesOfEachOrderGetWhatIsListed) {
  PaperOptions options;
  options.first = {PaperAnswer::timeout, PaperAnswer::down};
  EXPECT_EQ(paper_answer(options, "order-1", 0), PaperAnswer::timeout);
  EXPECT_EQ(paper_answer(options, "order-1", 1), PaperAnswer::down);
  EXPECT_EQ(paper_answer(options, "order-1", 2), PaperAnswer::fill);
}

TEST(PaperPrice, FollowsFromTheInstrument) {
  EXPECT_EQ(paper_price({}, "BTC-USD"), paper_price({}, "BTC-USD"));
  EXPECT_NE(paper_price({}, "BTC-USD"), paper_price({}, "ETH-USD"));
  EXPECT_TRUE(paper_price({}, "ETH-USD").is_positive());
}

}  // namespace
}  // namespace todoke::orders
