#include "nostr/deletion.hpp"

#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

std::vector<std::string> events_of(test::Tags tags) {
  std::vector<std::string> out;
  for (const auto& id : deletion_targets(test::event_with(kDeletion, std::move(tags))).events) {
    out.push_back(id.hex());
  }
  return out;
}

std::vector<std::string> addresses_of(test::Tags tags) {
  std::vector<std::string> out;
  for (const auto& address : deletion_targets(test::event_with(kDeletion, std::move(tags))).addresses) {
    out.push_back(address.text());
  }
  return out;
}

TEST(DeletionTargets, AreTheEventsOfItsETagsOnceAndInOrder) {
  EXPECT_EQ(events_of({{"e", test::kHexB},
                       {"e", test::kHexA, "wss://relay.example"},
                       {"e", test::kHexB},
                       {"e"},
                       {"e", "x"},
                       {"e", std::string(64, 'A')},
                       {"E", std::string(64, 'c')},
                       {"p", std::string(64, 'd')}}),
            (std::vector<std::string>{test::kHexA, test::kHexB}));
}

TEST(DeletionTargets, AreTheAuthorsOwnAddressesOnceAndInOrder) {
  const auto own = test::alice().pubkey().hex();
  EXPECT_EQ(addresses_of({{"a", "30023:" + own + ":b"},
                          {"a", "30023:" + own + ":a:c"},
                          {"a", "30023:" + own + ":b", "wss://relay.example"},
                          {"a", "0:" + own + ":"},
                          {"a", "30023:" + test::kHexA + ":b"},
                          {"a", "1:" + own + ":"},
                          {"a", "30023:" + own},
                          {"a"}}),
            (std::vector<std::string>{"0:" + own + ":", "30023:" + own + ":a:c", "30023:" + own + ":b"}));
}

TEST(DeletionTargets, AreNotRestrictedByKTags) {
  EXPECT_EQ(events_of({{"k", "7"}, {"e", test::kHexA}}), std::vector<std::string>{test::kHexA});
  EXPECT_EQ(addresses_of({{"k", "7"}, {"a", "0:" + test::alice().pubkey().hex() + ":"}}).size(), 1U);
}

TEST(DeletionTargets, MayBeNone) {
  EXPECT_TRUE(events_of({}).empty());
  EXPECT_TRUE(addresses_of({{"k", "1"}}).empty());
}

}  // namespace
}  // namespace todoke::nostr
