#include "base/hash_table.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace todoke {
namespace {

std::vector<std::uint8_t> counting(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  return bytes;
}

template <class Table>
std::size_t largest_bucket(const Table& table) {
  std::size_t largest = 0;
  for (std::size_t i = 0; i < table.bucket_count(); ++i) largest = std::max(largest, table.bucket_size(i));
  return largest;
}

// As CPython 3.11 has them: PYTHONHASHSEED=0, hash(bytes(range(n))).
TEST(SipHash, GivesTheValuesOfAnotherImplementation) {
  EXPECT_EQ(sip_hash({}, counting(1)), 0x68a914128e01e473U);
  EXPECT_EQ(sip_hash({}, counting(7)), 0x2f098ab0c751325aU);
  EXPECT_EQ(sip_hash({}, counting(8)), 0xead411e67ebe2eeaU);
  EXPECT_EQ(sip_hash({}, counting(9)), 0x75927f9d95124362U);
  EXPECT_EQ(sip_hash({}, counting(15)), 0xf30eb725bb91c9eaU);
  EXPECT_EQ(sip_hash({}, counting(32)), 0x31ef8061c910629bU);
  EXPECT_EQ(sip_hash({}, counting(63)), 0x385d3e39e5f37359U);
}

TEST(SipHash, DependsOnBothHalvesOfTheSeed) {
  const auto bytes = counting(32);
  EXPECT_NE(sip_hash({1, 0}, bytes), sip_hash({0, 0}, bytes));
  EXPECT_NE(sip_hash({0, 1}, bytes), sip_hash({0, 0}, bytes));
  EXPECT_NE(sip_hash({0, 1}, bytes), sip_hash({1, 0}, bytes));
}

TEST(SeededHash, HasASeedThatNobodyKnows) {
  EXPECT_NE(seeded_hash({}), sip_hash({}, {}));
  EXPECT_EQ(seeded_hash(counting(32)), seeded_hash(counting(32)));
}

// Texts that were chosen for the hash of the standard library, which is the same everywhere.
TEST(HashSet, SpreadsTextsThatWereChosenToShareABucket) {
  constexpr std::size_t kTexts = 500;
  std::unordered_set<std::string> plain;
  plain.reserve(kTexts);
  HashSet<std::string> seeded;
  for (int i = 0; plain.size() < kTexts; ++i) {
    const auto text = std::to_string(i);
    if (plain.bucket(text) == 0) {
      plain.insert(text);
      seeded.insert(text);
    }
  }
  EXPECT_EQ(largest_bucket(plain), kTexts);
  EXPECT_LT(largest_bucket(seeded), 16U);
}

TEST(HashMap, FindsTextsWithoutMakingAString) {
  const HashMap<std::string, int> map = {{"one", 1}, {"two", 2}};
  EXPECT_EQ(map.find(std::string_view("one"))->second, 1);
  EXPECT_TRUE(map.contains("two"));
  EXPECT_FALSE(map.contains("three"));
}

TEST(HashMap, TakesNumbersAndPointers) {
  const auto shared = std::make_shared<int>(7);
  EXPECT_TRUE((HashSet<std::shared_ptr<int>>{shared}.contains(shared)));
  EXPECT_TRUE((HashSet<const int*>{shared.get()}.contains(shared.get())));
  const HashMap<std::int64_t, int> map = {{-1, 1}, {1, 2}};
  const short other_width = -1;
  ASSERT_NE(map.find(other_width), map.end());
  EXPECT_EQ(map.find(other_width)->second, 1);
}

}  // namespace
}  // namespace todoke
