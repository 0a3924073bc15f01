// Hash tables that stand up to keys that clients choose: ids, names and texts from outside can be made to
// share a bucket of any table whose hash is known. These hash by SipHash-1-3 under a seed that each process
// draws for itself. They are the only hash tables of the program; cmake/check_includes.cmake stops the build
// at <unordered_map> and <unordered_set> elsewhere.
//
// A hash costs about 25 ns for an event id. The order of elements differs from run to run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "base/bytes.hpp"

namespace todoke {

struct HashSeed {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

// SipHash with one round for each word and three at the end.
std::uint64_t sip_hash(HashSeed seed, std::span<const std::uint8_t> bytes);

// The same with the seed of the process.
std::uint64_t seeded_hash(std::span<const std::uint8_t> bytes);

// For texts, integers, pointers, and values that show their `bytes()`. No operator is noexcept: libstdc++
// keeps the hash beside each key then, instead of computing it again at every step through a bucket.
struct SeededHash {
  using is_transparent = void;

  std::size_t operator()(std::string_view text) const { return seeded_hash(as_bytes(text)); }

  template <class Value>
    requires requires(const Value& value) { std::span<const std::uint8_t>(value.bytes()); }
  std::size_t operator()(const Value& value) const {
    return seeded_hash(value.bytes());
  }

  template <class Value>
    requires std::is_integral_v<Value>
  std::size_t operator()(Value value) const {
    return seeded_hash({reinterpret_cast<const std::uint8_t*>(&value), sizeof value});
  }

  template <class Value>
    requires(!std::is_convertible_v<Value*, std::string_view>)
  std::size_t operator()(Value* pointer) const {
    return (*this)(reinterpret_cast<std::uintptr_t>(pointer));
  }

  template <class Value>
  std::size_t operator()(const std::shared_ptr<Value>& pointer) const {
    return (*this)(pointer.get());
  }
};

// Texts are found by any form of text. Other keys are found by their own type alone: an `int` and an
// `int64_t` of the same value have different hashes.
template <class Key>
using KeyEqual =
    std::conditional_t<std::is_convertible_v<Key, std::string_view>, std::equal_to<>, std::equal_to<Key>>;

template <class Key, class Value>
using HashMap = std::unordered_map<Key, Value, SeededHash, KeyEqual<Key>>;
template <class Key>
using HashSet = std::unordered_set<Key, SeededHash, KeyEqual<Key>>;

}  // namespace todoke
