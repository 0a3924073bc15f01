#include "relay/rights.hpp"

#include <gtest/gtest.h>

#include "relay/test_support.hpp"

namespace todoke::relay::test {
namespace {

using nostr::Reason;
using nostr::TopicPolicy;

RightsPtr rights_to(std::vector<std::string> topics, bool lacks_consent = false, bool is_disabled = false,
                    std::vector<std::string> searched = {}) {
  return std::make_shared<const Rights>(
      Rights{is_disabled, lacks_consent, {topics.begin(), topics.end()}, {searched.begin(), searched.end()}});
}

nostr::Filter rights_filter(std::string_view json) {
  return nostr::parse_filter(json, {}).value();
}

std::optional<Reason> refusal_for(const Allowance& allowance, std::string_view json,
                                  TopicPolicy policy = TopicPolicy::topics, const KeySet& own = {}) {
  const std::vector<nostr::Filter> filters{rights_filter(json)};
  return allowance.refusal_of(filters, policy, own);
}

TEST(RightsTest, EveryTopicOfAFilterNeedsASubscription) {
  const Allowance one({rights_to({"a"})});
  EXPECT_EQ(refusal_for(one, R"({"#t":["a"]})"), std::nullopt);
  EXPECT_EQ(refusal_for(one, R"({"#t":["a","b"]})"), Reason::subscription_required);
  EXPECT_EQ(refusal_for(one, R"({"kinds":[1]})"), Reason::subscription_required);
  EXPECT_EQ(refusal_for(one, R"({"kinds":[1]})", TopicPolicy::open), std::nullopt);
}

TEST(RightsTest, KeysOfOneConnectionCountTogether) {
  const Allowance both({rights_to({"a"}), rights_to({"b"})});
  EXPECT_EQ(refusal_for(both, R"({"#t":["a","b"]})"), std::nullopt);
}

TEST(RightsTest, AKeyWithoutConsentBringsNoTopics) {
  const Allowance none({rights_to({"a"}, true)});
  EXPECT_EQ(none.refusal(), Reason::consent_required);
  EXPECT_EQ(refusal_for(none, R"({"#t":["a"]})", TopicPolicy::open), Reason::consent_required);
  const Allowance mixed({rights_to({"a"}, true), rights_to({"b"})});
  EXPECT_EQ(mixed.refusal(), std::nullopt);
  EXPECT_EQ(refusal_for(mixed, R"({"#t":["a"]})"), Reason::subscription_required);
  EXPECT_FALSE(mixed.may_use("a"));
  EXPECT_TRUE(mixed.may_use("b"));
}

TEST(RightsTest, ADisabledKeyEndsEverything) {
  const Allowance mixed({rights_to({"a"}, false, true), rights_to({"a"})});
  EXPECT_TRUE(mixed.has_disabled_key());
  EXPECT_EQ(mixed.refusal(), Reason::account_disabled);
}

TEST(RightsTest, ASearchNeedsASubscriptionThatOpensTheIndex) {
  const Allowance one({rights_to({"a", "b"}, false, false, {"b"})});
  EXPECT_EQ(refusal_for(one, R"({"#t":["a"],"search":"x"})"), Reason::subscription_required);
  EXPECT_EQ(refusal_for(one, R"({"#t":["b"],"search":"x"})"), std::nullopt);
}

TEST(RightsTest, FiltersForTheNodesOwnKeysNeedNoSubscription) {
  const auto key = author(1);
  HashSet<nostr::Pubkey> keys;
  keys.insert(key.pubkey());
  const KeySet own(std::move(keys));
  const Allowance nobody({rights_to({})});
  const auto hex = key.pubkey().hex();
  EXPECT_EQ(refusal_for(nobody, R"({"authors":[")" + hex + R"("]})", TopicPolicy::topics, own), std::nullopt);
  EXPECT_EQ(refusal_for(nobody, R"({"authors":[")" + hex + R"("],"#t":["a"]})", TopicPolicy::topics, own),
            Reason::subscription_required);
  EXPECT_EQ(refusal_for(nobody, R"({"authors":[]})", TopicPolicy::topics, own),
            Reason::subscription_required);
}

}  // namespace
}  // namespace todoke::relay::test
