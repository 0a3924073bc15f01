// Inside this room's tests: events to work on, and random choices that can be made again.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "nostr/signature.hpp"
#include "relay/incoming.hpp"

namespace todoke::relay::test {

using Tags = std::vector<std::vector<std::string>>;

inline constexpr std::int64_t kNow = 1'700'000'000;
inline const std::string kTopicA = "kukuri:" + std::string(64, 'a');
inline const std::string kTopicB = "kukuri:" + std::string(64, 'b');
inline const std::string kTopicC = "kukuri:" + std::string(64, 'c');

// The same author for the same number, 1 to 9.
inline nostr::SecretKey author(int number) {
  return nostr::SecretKey::from_hex(std::string(63, '0') + std::to_string(number)).value();
}

inline EventPtr event_of(const nostr::SecretKey& key, nostr::Kind kind, Tags tags, std::string content = "",
                         std::int64_t created_at = kNow) {
  return std::make_shared<const nostr::Event>(
      nostr::sign_event({created_at, kind, std::move(tags), std::move(content)}, key));
}

// An id that no event of a test has.
inline nostr::EventId id_of(std::uint64_t number) {
  nostr::EventId::Bytes bytes{};
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<std::uint8_t>(number >> (8 * i));
  return nostr::EventId(bytes);
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  // 0 to below - 1.
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(engine_);
  }
  bool percent(std::size_t chance) { return below(100) < chance; }
  template <class List>
  auto& pick(List& list) {
    return list[below(list.size())];
  }

 private:
  std::mt19937_64 engine_;
};

// `count` seeds, others in every run. They are printed; TODOKE_TEST_SEED=<the first one> makes them again.
inline std::vector<std::uint64_t> seeds(std::size_t count) {
  const char* given = std::getenv("TODOKE_TEST_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "seeds from " << first << " on\n";
  std::vector<std::uint64_t> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = first + i;
  return all;
}

}  // namespace todoke::relay::test
