#include "relay/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.hpp"

namespace todoke::relay {
namespace {

using testing::HasSubstr;
using todoke::test::Flags;

std::string refusal_of(const Flags& flags) {
  return todoke::test::refusal_of(config_keys(), check_config, flags);
}

TEST(RelayConfig, DefaultsAreAllowed) {
  EXPECT_EQ(refusal_of({}), "");
}

TEST(RelayConfig, ThePubkeyIsHex) {
  EXPECT_EQ(refusal_of({{"relay.pubkey", std::string(64, 'a')}}), "");
  EXPECT_THAT(refusal_of({{"relay.admins", "npub1xyz"}}),
              HasSubstr("relay.admins can't have 'npub1xyz': a key is 64 hex digits"));
  EXPECT_THAT(refusal_of({{"relay.pubkey", "npub1xyz"}}),
              HasSubstr("64 hex digits in lower case, not the npub"));
  EXPECT_THAT(refusal_of({{"relay.pubkey", std::string(64, 'g')}}), HasSubstr("relay.pubkey can't be"));
  EXPECT_THAT(refusal_of({{"relay.pubkey", std::string(63, 'a')}}), HasSubstr("relay.pubkey can't be"));
}

TEST(RelayConfig, ThePublicUrlIsWhatClientsConnectTo) {
  for (const auto* url : {"wss://relay.example.org", "ws://relay.example.org:8080/x", "wss://[::1]:7447"}) {
    EXPECT_EQ(refusal_of({{"relay.public_url", url}}), "") << url;
  }
  for (const auto* url : {"ftp://relay.example.org", "wss://", "a relay", "notaurl", "relay.example.org",
                          "http://x.example", "https://relay.example.org/"}) {
    EXPECT_THAT(refusal_of({{"relay.public_url", url}}), HasSubstr("relay.public_url can't be")) << url;
  }
}

TEST(RelayConfig, LinksOfTheInformationDocumentAreOfTheWeb) {
  for (const auto* key : {"relay.icon", "relay.banner", "relay.software", "relay.posting_policy",
                          "relay.privacy_policy", "relay.terms_of_service"}) {
    EXPECT_EQ(refusal_of({{key, "https://example.org/a.png"}}), "") << key;
    for (const auto* url : {"javascript:alert(1)", "a.png", "ftp://example.org/"}) {
      EXPECT_THAT(refusal_of({{key, url}}), HasSubstr(std::string(key) + " can't be")) << url;
    }
  }
}

TEST(RelayConfig, AReservedTopicHasNoBlanks) {
  EXPECT_EQ(refusal_of({{"topics.reserved", "kukuri:beta,other"}}), "");
  EXPECT_THAT(refusal_of({{"topics.reserved", "kukuri:beta,x y"}}), HasSubstr("can't have 'x y'"));
}

TEST(RelayConfig, PairsThatContradictEachOtherAreRefused) {
  EXPECT_THAT(refusal_of({{"relay.send_queue_bytes_max", "64KiB"}}), HasSubstr("could never be sent"));
  EXPECT_THAT(refusal_of({{"relay.limit_max", "100"}}), HasSubstr("relay.limit_default (500)"));
}

}  // namespace
}  // namespace todoke::relay
