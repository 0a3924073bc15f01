#include "nostr/kinds.hpp"

#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

TEST(Kinds, FallIntoTheFourClasses) {
  const auto all = [](KindClass expected, std::initializer_list<Kind> kinds) {
    for (const auto kind : kinds) EXPECT_EQ(class_of(kind), expected) << kind;
  };
  all(KindClass::regular, {1, 2, 4, 5, 40, 41, 44, 45, 62, 999, 1000, 1059, 9999, 40000, 65535});
  all(KindClass::replaceable, {0, 3, 10000, 10002, 19999});
  all(KindClass::ephemeral, {20000, 22242, 29999});
  all(KindClass::addressable, {30000, 30023, 39000, 39022, 39999});
}

TEST(Kinds, P2pOnlyAreExactlyThree) {
  for (int kind = 0; kind <= 65535; ++kind) {
    EXPECT_EQ(is_p2p_only(static_cast<Kind>(kind)), kind == 39020 || kind == 39021 || kind == 39022) << kind;
  }
}

TEST(Addresses, NameWhatVersionsHaveInCommon) {
  const auto pubkey = test::alice().pubkey().hex();
  const auto key = [](Kind kind, test::Tags tags) {
    const auto address = address_of(test::event_with(kind, std::move(tags)));
    return address ? address->text() : "none";
  };
  EXPECT_EQ(key(30000, {{"d", "a:b"}, {"d", "c"}}), "30000:" + pubkey + ":a:b") << "the first d counts";
  EXPECT_EQ(key(30000, {{"d"}, {"d", "c"}}), "30000:" + pubkey + ":");
  EXPECT_EQ(key(30000, {}), "30000:" + pubkey + ":") << "missing is empty";
  EXPECT_EQ(key(10002, {{"d", "x"}}), "10002:" + pubkey + ":") << "a replaceable has no d";
  EXPECT_EQ(key(0, {}), "0:" + pubkey + ":");
  EXPECT_EQ(key(1, {{"d", "x"}}), "none");
  EXPECT_EQ(key(20001, {{"d", "x"}}), "none");
}

TEST(Addresses, AreReadStrictly) {
  const auto pubkey = test::kHexA;
  for (const auto& good : {"30000:" + pubkey + ":d:e", "30000:" + pubkey + ":", "0:" + pubkey + ":",
                           "10002:" + pubkey + ":", "39999:" + pubkey + ":届け"}) {
    ASSERT_TRUE(Address::parse(good)) << good;
    EXPECT_EQ(Address::parse(good)->text(), good);
  }
  for (const auto& bad :
       {std::string(), "30000:" + pubkey, "1:" + pubkey + ":", "20000:" + pubkey + ":",
        "10002:" + pubkey + ":d", "030000:" + pubkey + ":", "+30000:" + pubkey + ":", "-1:" + pubkey + ":",
        "65536:" + pubkey + ":", "30000:" + pubkey.substr(1) + ":d", "30000:" + std::string(64, 'A') + ":d",
        ":" + pubkey + ":", "30000 :" + pubkey + ":", "30000:" + pubkey + "a:"}) {
    EXPECT_FALSE(Address::parse(bad)) << bad;
  }
}

}  // namespace
}  // namespace todoke::nostr
