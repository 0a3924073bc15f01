// Eight writers and four consumers at once: nobody skips or repeats an effect (soak.hpp).
#include <gtest/gtest.h>

#include "harness/test_database.hpp"
#include "soak.hpp"

namespace todoke::test {
namespace {

TEST(ConcurrencyTest, EightWritersAndFourConsumersSkipAndRepeatNothing) {
  Soak soak(std::make_shared<TestDatabase>());
  soak.run();
  soak.expect_nothing_was_skipped_or_repeated();
}

TEST(ConcurrencyTest, NorDoTheyWhileConsumersAndConnectionsAreKilledAtRandom) {
  Soak soak(std::make_shared<TestDatabase>());
  soak.run([&](Random& random) {
    if (chance(random, 50)) {
      soak.hurt_consumer(random);
    } else {
      soak.cut_connections(random);
    }
  });
  soak.expect_nothing_was_skipped_or_repeated();
}

}  // namespace
}  // namespace todoke::test
