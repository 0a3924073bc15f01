#include "bootstrap/documents.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nostr/rules.hpp"

namespace todoke::bootstrap {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

constexpr std::chrono::sys_seconds kNow{1'700'000'000s};
constexpr auto kWeek = std::chrono::hours(24 * 7);

class DocumentsTest : public testing::Test {
 protected:
  std::vector<nostr::Event> sign(const Changes& changes) const {
    std::vector<nostr::Event> events;
    for (const auto& draft : changes.to_sign) events.push_back(nostr::sign_event(draft, keys.node()));
    return events;
  }
  [[nodiscard]] std::vector<nostr::EventDraft> wanted() const { return documents(facts, keys, topics); }
  [[nodiscard]] Changes changes_at(std::chrono::sys_seconds now,
                                   const std::vector<nostr::Event>& in_effect) const {
    return changes(wanted(), in_effect, kWeek, now);
  }
  static std::vector<std::string> places(const Changes& changes) {
    std::vector<std::string> places;
    for (const auto& draft : changes.to_sign) places.push_back(draft.tags.front()[1]);
    return places;
  }

  NodeKeys keys{SecretBytes(32, 1)};
  NodeFacts facts{"a node", {"relay", "index"}, "wss://relay.example", "", "https://terms.example", "JP",
                  "me"};
  const std::string topic = "kukuri:" + std::string(64, 'a');
  std::vector<std::string> topics{topic};
};

TEST_F(DocumentsTest, ARelayTakesWhatANodeSigns) {
  const auto events = sign(changes_at(kNow, {}));
  ASSERT_THAT(events, SizeIs(3));
  for (const auto& event : events)
    EXPECT_EQ(nostr::broken_rule(event, {}, {}, kNow), std::nullopt) << event.json();
}

TEST_F(DocumentsTest, TheDescriptorNamesWhatTheNodeIsAndWithWhichKeysItSigns) {
  const auto descriptor = sign(changes_at(kNow, {})).front();
  EXPECT_EQ(descriptor.kind(), 39000);
  EXPECT_EQ(descriptor.first_value("d"), "descriptor");
  EXPECT_EQ(descriptor.first_value("t"), "kukuri:global");
  EXPECT_EQ(descriptor.first_value("exp"), std::to_string(1'700'000'000 + 604'800));
  EXPECT_THAT(
      std::string(descriptor.content()),
      HasSubstr(R"("name":"a node","roles":["relay","index"],"endpoints":{"relay":"wss://relay.example"})"));
  EXPECT_THAT(std::string(descriptor.content()), HasSubstr(keys.service("labels").pubkey().hex()));
}

TEST_F(DocumentsTest, ATopicHasAServiceForEachRoleThatServesTopics) {
  facts.roles.emplace_back("orders");
  EXPECT_THAT(places(changes_at(kNow, {})),
              ElementsAre("descriptor", "topic_service:" + topic + ":relay:public",
                          "topic_service:" + topic + ":index:public"));
}

TEST_F(DocumentsTest, WhatIsInEffectIsSignedAgainWhenHalfOfItsLifeIsOver) {
  const auto events = sign(changes_at(kNow, {}));
  EXPECT_THAT(changes_at(kNow, events).to_sign, IsEmpty());
  EXPECT_THAT(changes_at(kNow + kWeek / 2, events).to_sign, IsEmpty());
  EXPECT_THAT(changes_at(kNow + kWeek / 2 + 1s, events).to_sign, SizeIs(3));
}

TEST_F(DocumentsTest, OnlyWhatSaysSomethingElseIsSignedAndIsNewer) {
  const auto events = sign(changes_at(kNow, {}));
  facts.contact = "somebody else";
  const auto changed = changes_at(kNow, events);
  EXPECT_THAT(places(changed), ElementsAre("descriptor"));
  EXPECT_EQ(changed.to_sign.front().created_at, kNow.time_since_epoch().count() + 1);
  facts.relay_url = "wss://other.example";
  EXPECT_THAT(changes_at(kNow, events).to_sign, SizeIs(3));
}

TEST_F(DocumentsTest, TheServicesOfATopicThatTheNodeNoLongerTakesAreWithdrawn) {
  const auto events = sign(changes_at(kNow, {}));
  topics.clear();
  const auto gone = changes_at(kNow + 1s, events);
  EXPECT_THAT(gone.to_sign, IsEmpty());
  ASSERT_THAT(gone.to_withdraw, SizeIs(2));
  const auto draft = withdrawal(gone.to_withdraw, kNow + 1s);
  EXPECT_EQ(draft.kind, 5);
  const auto& tags = draft.tags;
  EXPECT_THAT(tags, testing::Contains(ElementsAre("e", gone.to_withdraw[0].id().hex())));
  EXPECT_THAT(tags, testing::Contains(ElementsAre("a", "39001:" + keys.node().pubkey().hex() +
                                                           ":topic_service:" + topic + ":relay:public")));
  EXPECT_THAT(tags, testing::Contains(ElementsAre("k", "39001")));
  EXPECT_THAT(tags, testing::Contains(ElementsAre("t", topic)));
}

}  // namespace
}  // namespace todoke::bootstrap
