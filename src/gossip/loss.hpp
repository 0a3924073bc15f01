// A network that loses: a test of several nodes in its process sets what part of the messages that the
// library brings is dropped, as if they had not come. 0 outside of tests.
#pragma once

#include <atomic>
#include <cstdint>

namespace todoke::gossip {

// Every so many-th message of the process is lost; 0: none.
inline std::atomic<std::uint32_t> lost_every{0};

inline bool loses_next() {
  static std::atomic<std::uint32_t> came{0};
  const auto every = lost_every.load(std::memory_order_relaxed);
  return every > 0 && came.fetch_add(1, std::memory_order_relaxed) % every == 0;
}

}  // namespace todoke::gossip
