#include "admin/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace todoke::admin {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

TEST(SamplerTest, TheSeriesOfAMetricAreAddedUp) {
  EXPECT_THAT(
      sums_by_metric(
          "# HELP a_total A.\n# TYPE a_total counter\na_total{kind=\"x y\"} 2\na_total{kind=\"z\"} 3\n"
          "level 0.5\nbroken\n"),
      UnorderedElementsAre(Pair("a_total", 5), Pair("level", 0.5)));
}

}  // namespace
}  // namespace todoke::admin
