#include "nostr/recipients.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nostr/test_support.hpp"

namespace todoke::nostr::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SecretKey key_of(char digit) {
  return SecretKey::from_hex(std::string(63, '0') + digit).value();
}

Event wrap(std::vector<std::vector<std::string>> tags) {
  return sign_event({1'700'000'000, kGiftWrap, std::move(tags), ""}, key_of('1'));
}

Filter of_kinds(std::vector<Kind> kinds) {
  Filter filter;
  filter.kinds = SortedSet<Kind>(std::move(kinds));
  return filter;
}

TEST(Recipients, AreTheKeysOfPTagsEachOnce) {
  const auto bob = key_of('2').pubkey();
  EXPECT_THAT(recipients_of(wrap({{"p", bob.hex(), "wss://x"}, {"p", bob.hex()}, {"e", bob.hex()}})),
              ElementsAre(bob));
  EXPECT_THAT(recipients_of(wrap({{"p"}, {"p", "bob"}, {"P", bob.hex()}})), IsEmpty());
}

TEST(Recipients, AuthorAndRecipientsAreParties) {
  const auto author = key_of('1').pubkey();
  const auto bob = key_of('2').pubkey();
  const auto carol = key_of('3').pubkey();
  const auto event = wrap({{"p", bob.hex()}, {"P", carol.hex()}, {"e", carol.hex()}});
  EXPECT_TRUE(is_party(event, std::vector{author}));
  EXPECT_TRUE(is_party(event, std::vector{carol, bob}));
  EXPECT_FALSE(is_party(event, std::vector{carol}));
  EXPECT_FALSE(is_party(event, {}));
  EXPECT_FALSE(is_party(wrap({}), std::vector{bob}));
}

TEST(Recipients, FiltersNamePrivateKindsByTheirNumbersOnly) {
  const auto only = of_kinds({4, 1059, 21059});
  const auto mixed = of_kinds({1, 1059});
  EXPECT_TRUE(names_only_private_kinds(std::vector{only, of_kinds({4})}));
  for (const auto& other : {mixed, of_kinds({1}), of_kinds({}), Filter{}}) {
    EXPECT_FALSE(names_only_private_kinds(std::vector{only, other}));
    EXPECT_TRUE(names_private_kinds(std::vector{other, only}));
  }
  EXPECT_TRUE(names_private_kinds(std::vector{mixed}));
  EXPECT_FALSE(names_private_kinds(std::vector{Filter{}, of_kinds({1, 5, 1060})}));
}

}  // namespace
}  // namespace todoke::nostr::test
