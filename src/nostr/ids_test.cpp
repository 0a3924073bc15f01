#include "nostr/ids.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hash_table.hpp"
#include "nostr/texts.hpp"

namespace todoke::nostr {
namespace {

TEST(Ids, TakeLowerCaseHexOfTheirLengthAndNothingElse) {
  const std::string good = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  ASSERT_TRUE(EventId::from_hex(good));
  EXPECT_EQ(EventId::from_hex(good)->hex(), good);
  EXPECT_TRUE(Signature::from_hex(good + good));
  EXPECT_FALSE(Signature::from_hex(good));
  for (const auto& bad :
       {std::string(), good.substr(1), good + "0", "0x" + good.substr(2), "A" + good.substr(1),
        "g" + good.substr(1), good.substr(1) + "/", good.substr(1) + ":", good.substr(1) + "`",
        std::string(1, '\0') + good.substr(1), "\xff" + good.substr(1)}) {
    EXPECT_FALSE(EventId::from_hex(bad)) << bad;
  }
}

TEST(Ids, EveryByteOutsideTheSixteenDigitsIsRefused) {
  for (int c = 0; c < 256; ++c) {
    std::string hex(64, '0');
    hex[17] = static_cast<char>(c);
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    EXPECT_EQ(EventId::from_hex(hex).has_value(), digit) << c;
  }
}

TEST(Ids, CompareAsTheirHexDoes) {
  const std::vector<std::string> ordered = {std::string(64, '0'), "00" + std::string(62, 'f'),
                                            "7f" + std::string(62, '0'), "80" + std::string(62, '0'),
                                            std::string(64, 'f')};
  for (const auto& a : ordered) {
    for (const auto& b : ordered) {
      EXPECT_EQ(*Pubkey::from_hex(a) < *Pubkey::from_hex(b), a < b);
      EXPECT_EQ(*Pubkey::from_hex(a) == *Pubkey::from_hex(b), a == b);
    }
  }
}

TEST(Ids, CanBeKeysOfHashTables) {
  const HashSet<EventId> ids = {*EventId::from_hex(std::string(64, '1')),
                                *EventId::from_hex(std::string(64, '1')),
                                *EventId::from_hex(std::string(64, '2'))};
  EXPECT_EQ(ids.size(), 2U);
  EXPECT_LT(Seq{1}, Seq{2});
}

// What forty deletions with 890 targets each can hold.
TEST(Ids, ThatShareTheirFirstDigitsAreSpreadOverTheBuckets) {
  HashSet<EventId> ids;
  for (int i = 0; i < 35'600; ++i) ids.insert(*EventId::from_hex(fmt::format("{:016x}{:048x}", 7, i)));
  std::size_t largest = 0;
  for (std::size_t i = 0; i < ids.bucket_count(); ++i) largest = std::max(largest, ids.bucket_size(i));
  // With a random hash a bucket of 16 comes once in 10^9 tables.
  EXPECT_LT(largest, 16U);
}

TEST(Texts, HaveAPrefixOfTheProtocolAndAreAllDifferent) {
  const std::set<std::string_view> prefixes = {"duplicate",   "pow",        "blocked", "rate-limited",
                                               "invalid",     "restricted", "error",   "auth-required",
                                               "unsupported", "closed"};
  std::set<std::string_view> texts;
  std::set<std::string_view> labels;
  for (const auto& [reason, label, text] : all_reasons()) {
    EXPECT_TRUE(prefixes.contains(text.substr(0, text.find(": ")))) << text;
    EXPECT_TRUE(texts.insert(text).second) << text;
    EXPECT_TRUE(labels.insert(label).second) << label;
    EXPECT_EQ(text_of(reason), text);
    EXPECT_EQ(label_of(reason), label);
  }
}

TEST(Texts, HoldEveryTextOfTheContract) {
  std::set<std::string_view> texts;
  for (const auto& entry : all_reasons()) texts.insert(entry.text);
  for (const auto* text : {"duplicate: already stored",
                           "duplicate: newer version stored",
                           "blocked: deleted by author",
                           "invalid: missing topic",
                           "invalid: missing d",
                           "invalid: expired",
                           "invalid: bad id",
                           "invalid: bad signature",
                           "invalid: event too large",
                           "invalid: too many tags",
                           "invalid: created_at out of range",
                           "invalid: missing epoch",
                           "invalid: epoch must be positive",
                           "invalid: not an auth event",
                           "invalid: wrong challenge",
                           "invalid: wrong relay",
                           "restricted: topic not enabled",
                           "restricted: p2p only",
                           "restricted: capacity",
                           "rate-limited: slow down",
                           "error: not stored, try again",
                           "invalid: #t required",
                           "error: query too slow"}) {
    EXPECT_TRUE(texts.contains(text)) << text;
  }
}

}  // namespace
}  // namespace todoke::nostr
