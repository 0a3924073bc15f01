#include "nostr/negentropy.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

#include "base/sha256.hpp"

namespace todoke::nostr {
namespace {

using Ids = std::vector<EventId>;

// The events of a test, by their numbers: three of each second.
NegItem item_of(std::uint64_t number) {
  return {static_cast<std::int64_t>(1'000 + number / 3), EventId(sha256({std::to_string(number)}))};
}

NegSet set_of(const std::vector<std::uint64_t>& numbers) {
  std::vector<NegItem> items;
  for (const auto number : numbers) items.push_back(item_of(number));
  return NegSet(std::move(items));
}

Ids ids_of(const std::vector<std::uint64_t>& numbers) {
  Ids ids;
  for (const auto number : numbers) ids.push_back(item_of(number).id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

Ids sorted(Ids ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string bytes_of(std::string_view hex) {
  std::string bytes(hex.size() / 2, '\0');
  EXPECT_TRUE(from_hex(hex, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()}));
  return bytes;
}

std::string hex_of(std::string_view bytes) {
  return to_hex(as_bytes(bytes));
}

struct Exchange {
  std::size_t rounds = 0;
  std::size_t longest = 0;
  std::size_t bytes = 0;
};

// Until the client knows everything.
Exchange run(NegClient& client, const NegSet& server, std::size_t client_max, std::size_t server_max) {
  Exchange exchange;
  std::optional<std::string> message = client.open();
  while (message) {
    EXPECT_LE(message->size(), client_max);
    const auto answer = neg_answer(server, *message, server_max);
    if (!answer) throw std::runtime_error(std::string(text_of(answer.error())));
    EXPECT_LE(answer->size(), server_max);
    ++exchange.rounds;
    exchange.bytes += message->size() + answer->size();
    auto next = client.take(*answer);
    if (!next) throw std::runtime_error(std::string(text_of(next.error())));
    message = std::move(*next);
  }
  return exchange;
}

TEST(NegSetTest, OrderAndRepetitionOfItemsMakeNoDifference) {
  std::vector<NegItem> items;
  for (std::uint64_t i = 0; i < 300; ++i) items.push_back(item_of(i));
  const auto whole = NegSet(items).fingerprint(0, 300);
  std::sort(items.begin(), items.end(), [](const NegItem& a, const NegItem& b) {
    return a.created_at != b.created_at ? a.created_at > b.created_at : a.id < b.id;
  });
  const NegSet newest_first(items);
  EXPECT_EQ(newest_first.fingerprint(0, 300), whole);
  for (std::size_t i = 1; i < 300; ++i) EXPECT_LT(newest_first.at(i - 1), newest_first.at(i));
  std::shuffle(items.begin(), items.end(), std::mt19937_64(7));
  items.insert(items.end(), items.begin(), items.begin() + 50);
  const NegSet shuffled(items);
  EXPECT_EQ(shuffled.size(), 300U);
  EXPECT_EQ(shuffled.fingerprint(0, 300), whole);
}

TEST(NegSetTest, FingerprintOfARangeIsThatOfASetOfItsOwn) {
  std::vector<NegItem> items;
  for (std::uint64_t i = 0; i < 200; ++i) items.push_back(item_of(i));
  const NegSet whole(items);
  const std::vector<std::pair<std::size_t, std::size_t>> ranges = {{0, 0},   {0, 1},    {0, 64},  {1, 64},
                                                                   {63, 65}, {64, 128}, {5, 199}, {128, 200}};
  for (const auto& [from, to] : ranges) {
    std::vector<NegItem> part;
    for (auto i = from; i < to; ++i) part.push_back(whole.at(i));
    const NegSet alone(part);
    EXPECT_EQ(whole.fingerprint(from, to), alone.fingerprint(0, alone.size())) << from << " " << to;
  }
}

TEST(NegSetTest, SumsOfIdsWrapAround) {
  EventId::Bytes most{};
  most.fill(0xff);
  EventId::Bytes two{};
  two[0] = 2;
  EventId::Bytes one{};
  one[0] = 1;
  // 2^256 - 1 + 2 = 1, but of two ids.
  const NegSet wrapped({{1, EventId(most)}, {2, EventId(two)}});
  const NegSet alone({{1, EventId(one)}});
  const auto hash = sha256({std::string("\x01", 1) + std::string(31, '\0') + "\x02"});
  EXPECT_TRUE(std::equal(hash.begin(), hash.begin() + 16, wrapped.fingerprint(0, 2).begin()));
  EXPECT_NE(wrapped.fingerprint(0, 2), alone.fingerprint(0, 1));
}

TEST(NegentropyTest, EqualSetsNeedOneMessageAndOneAnswer) {
  std::vector<std::uint64_t> numbers(1'000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const auto set = set_of(numbers);
  NegClient client(set, {});
  const auto exchange = run(client, set, 60'000, 60'000);
  EXPECT_EQ(exchange.rounds, 1U);
  EXPECT_LT(exchange.bytes, 500U);
  EXPECT_TRUE(client.have().empty());
  EXPECT_TRUE(client.need().empty());
}

// The crate `negentropy` 0.5.3, client and server, between the numbers to 600 without those that 7 divides
// and those without what 11 divides.
TEST(NegentropyTest, MessagesAreThoseOfAnotherImplementationByteByByte) {
  std::vector<std::uint64_t> here;
  std::vector<std::uint64_t> there;
  for (std::uint64_t i = 0; i < 600; ++i) {
    if (i % 7 != 0) here.push_back(i);
    if (i % 11 != 0) there.push_back(i);
  }
  const auto mine = set_of(here);
  const auto theirs = set_of(there);
  NegClient client(mine, {});
  const auto digest = [](const std::string& message) { return to_hex(sha256({message})); };
  const auto first = client.open();
  EXPECT_EQ(first.size(), 314U);
  EXPECT_EQ(digest(first), "db3211515ce38dca1b3066b383c693149f335ee23144a6568458333d82de5d6d");
  const auto answer = neg_answer(theirs, first, 60'000).value();
  EXPECT_EQ(digest(answer), "38bdf1ed92809e97d370a0b4c3e455cb5680cee323398019d0786d40b0bc4732");
  const auto second = client.take(answer).value().value();
  EXPECT_EQ(digest(second), "4332cd5cf53f4e7820dd7d422820f8e04d2d397d13cb8a93e820706d95074b2b");
  const auto last = neg_answer(theirs, second, 60'000).value();
  EXPECT_EQ(digest(last), "21902e8a26991fc371e06f830849e34d5799cb28e24bf96f9e7e755ff3e9098b");
  EXPECT_EQ(client.take(last).value(), std::nullopt);
  EXPECT_EQ(client.have().size(), 47U);
  EXPECT_EQ(client.need().size(), 78U);
}

TEST(NegentropyTest, RandomSetsReconcileToTheExactDifference) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t size = 1 + random() % (seed % 3 == 0 ? 20 : 4'000);
    const std::uint64_t missing_here = seed % 5 == 0 ? 100 : random() % 40;
    const std::uint64_t missing_there = seed % 7 == 0 ? 100 : random() % 40;
    const std::size_t client_max = seed % 2 == 0 ? kNegMessageBytesMin : 60'000;
    const std::size_t server_max = seed % 4 < 2 ? kNegMessageBytesMin : 250'000;
    std::vector<std::uint64_t> here;
    std::vector<std::uint64_t> there;
    std::vector<std::uint64_t> only_here;
    std::vector<std::uint64_t> only_there;
    for (std::uint64_t i = 0; i < size; ++i) {
      const bool is_here = random() % 100 >= missing_here;
      const bool is_there = random() % 100 >= missing_there;
      if (is_here) here.push_back(i);
      if (is_there) there.push_back(i);
      if (is_here && !is_there) only_here.push_back(i);
      if (!is_here && is_there) only_there.push_back(i);
    }
    const auto mine = set_of(here);
    const auto theirs = set_of(there);
    NegClient client(mine, {.message_bytes_max = client_max, .need_max = size});
    run(client, theirs, client_max, server_max);
    EXPECT_EQ(sorted(client.have()), ids_of(only_here)) << "seed " << seed;
    EXPECT_EQ(sorted(client.need()), ids_of(only_there)) << "seed " << seed;
  }
}

TEST(NegentropyTest, EventsOfOneSecondAreToldApartByTheirIds) {
  std::vector<NegItem> items;
  for (std::uint64_t i = 0; i < 500; ++i) items.push_back({7, item_of(i).id});
  const NegSet theirs(items);
  std::vector<NegItem> fewer(items.begin() + 3, items.end());
  const NegSet mine(fewer);
  NegClient client(mine, {});
  run(client, theirs, 60'000, 60'000);
  EXPECT_EQ(sorted(client.need()), ids_of({0, 1, 2}));
}

TEST(NegentropyTest, SmallDifferenceOfLargeSetsCostsLittle) {
  std::vector<NegItem> items;
  for (std::uint64_t i = 0; i < 100'000; ++i) items.push_back(item_of(i));
  const NegSet theirs(items);
  items.erase(items.begin() + 50'000);
  const NegSet mine(items);
  NegClient client(mine, {});
  const auto exchange = run(client, theirs, 60'000, 60'000);
  EXPECT_EQ(client.need(), ids_of({50'000}));
  EXPECT_LE(exchange.rounds, 5U);
  EXPECT_LT(exchange.bytes, 5'000U);
}

TEST(NegentropyTest, UnknownVersionIsAnsweredWithTheOneThatIsSpoken) {
  const auto set = set_of({1, 2});
  EXPECT_EQ(hex_of(neg_answer(set, bytes_of("62ffff"), 60'000).value()), "61");
  EXPECT_EQ(neg_answer(set, bytes_of("51"), 60'000).error(), NegFault::version);
  NegClient client(set, {});
  EXPECT_EQ(client.take(bytes_of("62")).error(), NegFault::version);
  EXPECT_EQ(client.take(bytes_of("61")).value(), std::nullopt);
}

TEST(NegentropyTest, BrokenMessagesAreRefused) {
  const auto set = set_of({1, 2, 3});
  const auto fault = [&](std::string_view hex) { return neg_answer(set, bytes_of(hex), 60'000).error(); };
  EXPECT_EQ(fault(""), NegFault::truncated);
  EXPECT_EQ(fault("6100"), NegFault::truncated) << "a bound without its prefix";
  EXPECT_EQ(fault("610000"), NegFault::truncated) << "a range without its kind";
  EXPECT_EQ(fault("61000001aabb"), NegFault::truncated) << "half a fingerprint";
  EXPECT_EQ(fault("610021"), NegFault::truncated) << "a prefix longer than an id";
  EXPECT_EQ(fault("61000002ffffffff7f"), NegFault::truncated) << "four billion ids, and none there";
  EXPECT_EQ(fault("61000002ffffffffffffffffff7f"), NegFault::truncated) << "more ids than a number has room";
  EXPECT_EQ(fault("61ffffffffffffffffffffff7f0000"), NegFault::truncated) << "a time of 80 bits";
  EXPECT_EQ(fault("61000003"), NegFault::mode);
  EXPECT_EQ(fault("610501ff000101ee00"), NegFault::wrong_order) << "the same second, a smaller prefix";
  EXPECT_TRUE(neg_answer(set, bytes_of("610501ee000101ff00"), 60'000).has_value());
}

TEST(NegentropyTest, MessageCutOffAnywhereIsRefusedOrAnswered) {
  std::vector<std::uint64_t> numbers(200);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  const auto set = set_of(numbers);
  const NegSet other = set_of({1, 2, 3, 500});
  NegClient client(set, {});
  const auto message = client.open();
  for (std::size_t length = 0; length < message.size(); ++length) {
    const auto answer = neg_answer(other, std::string_view(message).substr(0, length), 60'000);
    EXPECT_TRUE(answer || answer.error() == NegFault::truncated) << length;
  }
}

TEST(NegentropyTest, ClientTakesNoMoreIdsThanItWants) {
  const NegSet mine;
  NegClient client(mine, {.message_bytes_max = 60'000, .need_max = 3});
  EXPECT_FALSE(
      client.take("\x61" + std::string("\0\0\2\3", 4) + std::string(64, 'a') + std::string(32, 'b')).value());
  EXPECT_EQ(client.need().size(), 2U) << "equal ones in a list count once";
  EXPECT_EQ(
      client.take("\x61" + std::string("\0\0\2\2", 4) + std::string(32, 'c') + std::string(32, 'd')).error(),
      NegFault::too_many_ids);
}

TEST(NegentropyTest, WhatTheServerLacksIsToldOnceHoweverOftenItIsAsked) {
  const auto mine = set_of({1, 2, 3});
  NegClient client(mine, {});
  const auto empty_list = "\x61" + std::string("\0\0\2\0", 4);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.take(empty_list).has_value());
  EXPECT_EQ(sorted(client.have()), ids_of({1, 2, 3}));
}

TEST(NegentropyTest, ServerThatNeverEndsIsLeft) {
  const auto mine = set_of({1});
  NegClient client(mine, {});
  const auto other_fingerprint = "\x61" + std::string("\0\0\1", 3) + std::string(16, 'x');
  for (std::size_t i = 0; i < NegClient::kRoundsMax; ++i) {
    const auto next = client.take(other_fingerprint);
    ASSERT_TRUE(next && *next);
  }
  EXPECT_EQ(client.take(other_fingerprint).error(), NegFault::endless_rounds);
}

}  // namespace
}  // namespace todoke::nostr
