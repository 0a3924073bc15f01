#include "base/hash_table.hpp"

#include <array>
#include <bit>
#include <cstring>

namespace todoke {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr int kFinalRounds = 3;

struct State {
  std::uint64_t v0;
  std::uint64_t v1;
  std::uint64_t v2;
  std::uint64_t v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void add(std::uint64_t word) {
    v3 ^= word;
    round();
    v0 ^= word;
  }
};

HashSeed random_seed() {
  std::array<std::uint8_t, sizeof(HashSeed)> bytes;
  random_bytes(bytes);
  return std::bit_cast<HashSeed>(bytes);
}

}  // namespace

std::uint64_t sip_hash(HashSeed seed, std::span<const std::uint8_t> bytes) {
  State state{seed.first ^ 0x736f6d6570736575, seed.second ^ 0x646f72616e646f6d,
              seed.first ^ 0x6c7967656e657261, seed.second ^ 0x7465646279746573};
  auto last = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (; bytes.size() >= kWord; bytes = bytes.subspan(kWord)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), kWord);
    state.add(word);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) last |= static_cast<std::uint64_t>(bytes[i]) << (8 * i);
  state.add(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < kFinalRounds; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

std::uint64_t seeded_hash(std::span<const std::uint8_t> bytes) {
  static const HashSeed seed = random_seed();
  return sip_hash(seed, bytes);
}

}  // namespace todoke
