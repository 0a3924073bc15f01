// How the nodes of a run are set: short enough that every wait of the program comes to its end in seconds.
#pragma once

#include <chrono>

namespace todoke::test {

inline constexpr int kAttemptsMax = 5;
inline constexpr int kConcurrency = 4;
inline constexpr int kBackoffFirstSec = 0;
inline constexpr int kBackoffSec = 1;
inline constexpr std::chrono::milliseconds kBrokerTimeout(300);
inline constexpr std::chrono::milliseconds kLease(1'500);  // the least that this timeout allows is 1.3 s
// After the last fault: a lease, the pause of a breaker, all attempts with their backoff. A hundred times
// what a quiet machine needs.
inline constexpr std::chrono::seconds kSettledWithin(60);

}  // namespace todoke::test
