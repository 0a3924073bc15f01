#include "relay/known_ids.hpp"

#include <gtest/gtest.h>

#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

TEST(KnownIds, AnIdIsNewOnce) {
  KnownIds known;
  EXPECT_FALSE(known.contains(id_of(1)));
  EXPECT_TRUE(known.add(id_of(1)));
  EXPECT_FALSE(known.add(id_of(1)));
  EXPECT_TRUE(known.contains(id_of(1)));
}

TEST(KnownIds, AForgottenIdIsNewAgainWhicheverGenerationHasIt) {
  KnownIds known(4);
  for (std::uint64_t i = 0; i < 5; ++i) known.add(id_of(i));  // 0 to 3 are the older generation
  for (const std::uint64_t i : {0U, 4U}) {
    known.forget(id_of(i));
    EXPECT_FALSE(known.contains(id_of(i)));
    EXPECT_TRUE(known.add(id_of(i)));
  }
}

TEST(KnownIds, RemembersTheLastGenerationAndHoldsNoMoreThanTwo) {
  constexpr std::uint64_t kGeneration = 16;
  KnownIds known(kGeneration);
  constexpr std::uint64_t kAll = 10 * kGeneration;
  for (std::uint64_t i = 0; i < kAll; ++i) {
    known.add(id_of(i));
    for (std::uint64_t back = 0; back < kGeneration && back <= i; ++back) {
      ASSERT_TRUE(known.contains(id_of(i - back))) << "the one " << back << " before " << i;
    }
  }
  std::uint64_t held = 0;
  for (std::uint64_t i = 0; i < kAll; ++i) held += known.contains(id_of(i)) ? 1U : 0U;
  EXPECT_LE(held, 2 * kGeneration);
}

}  // namespace
}  // namespace todoke::relay::test
