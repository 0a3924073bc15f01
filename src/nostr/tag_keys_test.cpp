#include "nostr/tag_keys.hpp"

#include "nostr/test_support.hpp"

namespace todoke::nostr {
namespace {

using namespace std::string_literals;

TEST(TagKeys, AreTheLettersWithAValueOnceAndInOrder) {
  const auto event = test::event_with(1, {{"t", "b"},
                                          {"t", "a", "more"},
                                          {"t", "b"},
                                          {"T", "a"},
                                          {"z", ""},
                                          {"t"},
                                          {},
                                          {"", "x"},
                                          {"tt", "x"},
                                          {"-", "x"},
                                          {"1", "x"},
                                          {"é", "x"}});
  EXPECT_EQ(tag_keys_of(event), (std::vector<TagKey>{{'T', "a"}, {'t', "a"}, {'t', "b"}, {'z', ""}}));
}

TEST(TagKeys, OfLongValuesAreHashes) {
  const std::string fits(256, 'a');
  const auto event = test::event_with(1, {{"r", fits}, {"r", fits + "a"}});
  EXPECT_EQ(
      tag_keys_of(event),
      (std::vector<TagKey>{
          {'r', fits}, {'r', "sha256:e8d95cc2b4bc198c54b40bd214df958afb65f5e73d2c2eafe0593cf5c635c1f0"}}));
}

TEST(TagKeys, OfTextWithU0000AreHashes) {
  EXPECT_EQ(tag_value_key("a\0b"s),
            "sha256:59b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138");
}

TEST(TagKeys, OfShortValuesAreTheValues) {
  for (const auto& value : {""s, "届け"s, test::kTopic, "\x01\n"s}) EXPECT_EQ(tag_value_key(value), value);
}

TEST(EffectiveKeys, AreTheAddressUntilItIsTooLong) {
  const Address address{30023, test::alice().pubkey(), std::string(1024 - 6 - 65, 'd')};
  EXPECT_EQ(address.text().size(), 1024U);
  EXPECT_EQ(effective_key(address), address.text());
  auto longer = address;
  longer.d += 'd';
  const auto start = "30023:" + address.pubkey.hex() + ":sha256:";
  EXPECT_EQ(effective_key(longer), start + tag_value_key(longer.d).substr(7));
  EXPECT_EQ(effective_key(longer).size(), start.size() + 64);
}

TEST(EffectiveKeys, HashAnIdentifierWithU0000) {
  const auto pubkey = test::alice().pubkey();
  EXPECT_EQ(effective_key({30023, pubkey, "a\0b"s}), "30023:" + pubkey.hex() + ":" + tag_value_key("a\0b"s));
}

}  // namespace
}  // namespace todoke::nostr
