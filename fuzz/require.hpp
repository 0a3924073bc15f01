// What a fuzz target demands of every input: where it does not hold, the target aborts and the input is kept.
#pragma once

#include <cstdlib>

namespace todoke::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace todoke::fuzz
