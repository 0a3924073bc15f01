// Waits for what can't be subscribed to: looks again and again until it is so.
#pragma once

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>

namespace todoke::test {

// Long enough for a loaded machine under a sanitizer; only what is broken ever waits so long.
inline constexpr std::chrono::seconds kPatience(60);
// Between two looks: leaves the processor to what is waited for.
inline constexpr std::chrono::milliseconds kLookEvery(2);

// True as soon as the condition holds; false when it does not within kPatience.
inline bool await(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(kLookEvery);
  }
  return true;
}

// The same, for what the test can't go on without: throws, naming it.
inline void wait_until(const std::string& what, const std::function<bool()>& condition) {
  if (!await(condition)) throw std::runtime_error("gave up waiting for " + what);
}

}  // namespace todoke::test
