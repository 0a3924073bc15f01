#include "queue/fate.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace todoke::queue {
namespace {

TEST(Fate, HasTheStepsOfTheDiagramAndNoOthers) {
  const std::set<std::string> drawn{
      "waiting working", "waiting ended",    "waiting dropped",  "working undecided",
      "working ended",   "working dropped",  "undecided ended",  "undecided dropped",
      "ended settling",  "ended dropped",    "settling settled", "settling lost",
      "settling locked", "settling dropped", "locked settling",  "locked dropped"};
  std::set<std::string> steps;
  for (int from = 0; from < kFates; ++from) {
    for (int to = 0; to < kFates; ++to) {
      const auto [a, b] = std::pair(static_cast<Fate>(from), static_cast<Fate>(to));
      if (may_become(a, b)) steps.insert(std::string(to_string(a)) + " " + std::string(to_string(b)));
    }
  }
  EXPECT_EQ(steps, drawn);
}

TEST(Fate, AWorkerHoldsTheRowUntilItIsSettledLostOrDropped) {
  EXPECT_TRUE(is_held(Fate::waiting));
  EXPECT_TRUE(is_held(Fate::locked));
  EXPECT_FALSE(is_held(Fate::settled));
  EXPECT_FALSE(is_held(Fate::lost));
  EXPECT_FALSE(is_held(Fate::dropped));
}

}  // namespace
}  // namespace todoke::queue
