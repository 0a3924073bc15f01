// What a seed decides.
#pragma once

#include <random>

namespace todoke::test {

using Random = std::mt19937_64;

inline int pick(Random& random, int least, int most) {
  return std::uniform_int_distribution<int>(least, most)(random);
}

inline bool chance(Random& random, int percent) {
  return pick(random, 1, 100) <= percent;
}

}  // namespace todoke::test
