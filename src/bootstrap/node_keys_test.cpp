#include "bootstrap/node_keys.hpp"

#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "nostr/event_id.hpp"

namespace todoke::bootstrap {
namespace {

class NodeKeysTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("todoke-keys-{}", random_hex(8));
  const std::filesystem::path file = folder / "node.key";
};

TEST_F(NodeKeysTest, KeysAreMadeOnceAndAreTheSameForAllWhoShareTheFile) {
  EXPECT_FALSE(read_keys(file));
  const auto made = take_keys(file);
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(keys_json(take_keys(file)), keys_json(made));
  std::set<nostr::Pubkey> different;
  for (const auto& named : made.all()) different.insert(named.key.pubkey());
  EXPECT_EQ(different.size(), 1 + kAlgorithms.size());
}

TEST_F(NodeKeysTest, ServiceKeysAreDerivedAsTheyAlwaysWere) {
  const NodeKeys keys(SecretBytes(32, 1));
  EXPECT_EQ(keys.node().pubkey().hex(), "1b84c5567b126440995d3ed5aaba0565d71e1834604819ff9c17f5e9d5dd078f");
  EXPECT_EQ(keys.service("labels").pubkey().hex(),
            "bec3016c7a1380a885bd2f1bbcadb05e9c8dba9672db8bf15fb05546a268d6b2");
  EXPECT_THROW((void)keys.service("other"), std::out_of_range);
  EXPECT_EQ(keys.find(keys.service("labels").pubkey()), &keys.service("labels"));
  EXPECT_EQ(keys.find(nostr::SecretKey::generate().pubkey()), nullptr);
}

TEST_F(NodeKeysTest, EachKeySignsForItself) {
  const NodeKeys keys(SecretBytes(32, 2));
  for (const auto& named : keys.all()) {
    const auto event = nostr::sign_event({1'700'000'000, 1, {}, "signed"}, named.key);
    EXPECT_EQ(event.pubkey(), named.key.pubkey());
    EXPECT_TRUE(nostr::has_right_signature(event));
  }
}

TEST_F(NodeKeysTest, TheJsonHasTheKeysAndNothingElse) {
  const NodeKeys keys(SecretBytes(32, 1));
  const auto hex = [&](std::string_view algorithm) { return keys.service(algorithm).pubkey().hex(); };
  EXPECT_EQ(keys_json(keys),
            fmt::format(R"({{"node":{{"pubkey":"{}"}},"services":[{{"algorithm":"labels","pubkey":"{}"}},)"
                        R"({{"algorithm":"report-based","pubkey":"{}"}},)"
                        R"({{"algorithm":"communication-density","pubkey":"{}"}}]}})",
                        keys.node().pubkey().hex(), hex("labels"), hex("report-based"),
                        hex("communication-density")));
}

TEST_F(NodeKeysTest, ARotationKeepsTheOldSecretUntilItIsForgotten) {
  const auto before = keys_json(take_keys(file));
  EXPECT_FALSE(read_old_keys(file));
  const auto after = keys_json(rotate_keys(file));
  EXPECT_NE(after, before);
  EXPECT_EQ(keys_json(take_keys(file)), after);
  EXPECT_EQ(keys_json(read_old_keys(file).value()), before);
  EXPECT_THROW(rotate_keys(file), UserError);
  forget_old_keys(file);
  EXPECT_FALSE(read_old_keys(file));
  rotate_keys(file);
}

TEST_F(NodeKeysTest, ARotationThatWasCutOffBeforeTheNewSecretIsRepeated) {
  const auto before = keys_json(take_keys(file));
  std::filesystem::copy_file(file, folder / "node.key.old");
  const auto after = keys_json(rotate_keys(file));
  EXPECT_NE(after, before);
  EXPECT_EQ(keys_json(read_old_keys(file).value()), before);
}

TEST_F(NodeKeysTest, NothingIsRotatedBeforeTheFirstStart) {
  EXPECT_THROW(rotate_keys(file), UserError);
  EXPECT_FALSE(std::filesystem::exists(file));
}

}  // namespace
}  // namespace todoke::bootstrap
