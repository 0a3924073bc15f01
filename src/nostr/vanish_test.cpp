#include "nostr/vanish.hpp"

#include <gtest/gtest.h>

#include "nostr/test_support.hpp"

namespace todoke::nostr::test {
namespace {

constexpr auto kHost = "relay.example.org:7447";

bool is_meant(Tags tags, const std::string& host = kHost) {
  return is_to_vanish_from(event_with(kVanish, std::move(tags)), host);
}

TEST(Vanish, TheRelayIsNamedByTheHostOfItsUrl) {
  EXPECT_TRUE(is_meant({{"relay", "wss://relay.example.org/"}}));
  EXPECT_TRUE(
      is_meant({{"relay", "wss://other.example.org"}, {"relay", "ws://RELAY.example.org:7447/relay"}}));
  EXPECT_FALSE(is_meant({{"relay", "wss://other.example.org"}}));
  EXPECT_FALSE(is_meant({{"relay", "wss://relay.example.org.evil.org"}}));
  EXPECT_FALSE(is_meant({{"relay", "relay.example.org"}}));
  EXPECT_FALSE(is_meant({{"r", "wss://relay.example.org"}}));
  EXPECT_FALSE(is_meant({}));
}

TEST(Vanish, AllRelaysAreMeantInThatVerySpelling) {
  EXPECT_TRUE(is_meant({{"relay", "ALL_RELAYS"}}));
  EXPECT_FALSE(is_meant({{"relay", "all_relays"}}));
}

TEST(Vanish, ARelayThatDoesNotKnowItsNameIsMeantByAllRelaysOnly) {
  EXPECT_TRUE(is_meant({{"relay", "ALL_RELAYS"}}, ""));
  EXPECT_FALSE(is_meant({{"relay", "wss://relay.example.org"}}, ""));
  EXPECT_FALSE(is_meant({{"relay", "wss://"}, {"relay", ""}}, ""));
}

}  // namespace
}  // namespace todoke::nostr::test
