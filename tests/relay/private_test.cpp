// Direct messages and gift wraps (kinds 4, 1059, 21059): for their authors and recipients only, everywhere.
#include <fmt/format.h>

#include "support.hpp"

namespace todoke::test {
namespace {

constexpr nostr::Kind kWrap = nostr::kGiftWrap;

class PrivateTest : public TopicsTest {
 protected:
  Event wrap_for(const SecretKey& recipient, nostr::Kind kind = kWrap, Tags more = {}) {
    more.push_back({"p", hex_of(recipient)});
    return global_note(alice, "sealed", std::move(more), kind);
  }
};

TEST_F(PrivateTest, StoredEventsAndCountsAreOfTheirPartiesOnly) {
  NostrClient author(rig.url());
  NostrClient recipient(rig.url());
  NostrClient other(rig.url());
  EXPECT_TRUE(author.authenticate(alice).accepted);
  EXPECT_TRUE(recipient.authenticate(bob).accepted);
  EXPECT_TRUE(other.authenticate(SecretKey::generate()).accepted);
  const auto wrap = wrap_for(bob, kWrap, {{"x", "1"}});
  const auto message = wrap_for(bob, nostr::kDirectMessage, {{"x", "1"}});
  const auto open = global_note(alice, "open", {{"x", "1"}, {"p", hex_of(bob)}});
  for (const auto& event : {wrap, message, open}) store(event);
  const auto ids = fmt::format(R"("ids":["{}","{}","{}"])", hex_of(wrap), hex_of(message), hex_of(open));
  // From the tables and from memory; counted by links, by several filters, by tags.
  for (int round = 0; round < 3; ++round) {
    for (const auto& filter :
         {std::string(kGlobal), global_and(ids), global_and(R"("#x":["1"])"), global_and(R"("seq_after":0)"),
          global_and(R"("kinds":[1,4,1059])"), global_and(fmt::format(R"("authors":["{}"])", hex_of(alice))),
          global_and(R"("kinds":[1])") + "," + global_and(R"("kinds":[1,4,1059])"),
          global_and(fmt::format(R"("#p":["{}"])", hex_of(bob)))}) {
      for (auto* outsider : {&client, &other}) {
        EXPECT_THAT(outsider->stored(filter).ids, ElementsAre(hex_of(open))) << filter;
        EXPECT_EQ(outsider->count("c", filter), R"(["COUNT","c",{"count":1}])") << filter;
      }
      for (auto* party : {&author, &recipient}) {
        EXPECT_THAT(party->stored(filter).ids,
                    testing::UnorderedElementsAre(hex_of(open), hex_of(wrap), hex_of(message)))
            << filter;
        EXPECT_EQ(party->count("c", filter), R"(["COUNT","c",{"count":3}])") << filter;
      }
    }
  }
}

TEST_F(PrivateTest, LiveEventsReachTheirPartiesOnlyEphemeralOnesToo) {
  NostrClient recipient(rig.url());
  NostrClient other(rig.url());
  EXPECT_TRUE(recipient.authenticate(bob).accepted);
  EXPECT_TRUE(other.authenticate(SecretKey::generate()).accepted);
  for (auto* subscriber : {&client, &recipient, &other}) subscriber->request("s", kGlobal);
  NostrClient sender(rig.url());
  for (const nostr::Kind kind : nostr::kPrivateKinds) {
    const auto event = wrap_for(bob, kind);
    const auto open = global_note(alice, fmt::format("open {}", kind));
    store_at(sender, event);
    store_at(sender, open);
    EXPECT_EQ(recipient.live("s"), event.json());
    for (auto* subscriber : {&client, &recipient, &other}) EXPECT_EQ(subscriber->live("s"), open.json());
  }
  // On the subscription that is open, from the moment on at which the key is proven.
  EXPECT_TRUE(client.authenticate(bob).accepted);
  const auto next = wrap_for(bob, kWrap, {{"x", "next"}});
  store_at(sender, next);
  EXPECT_EQ(client.live("s"), next.json());
}

TEST_F(PrivateTest, AnotherRelayOfTheDatabaseKeepsThemToTheirPartiesToo) {
  RelayRig second(NodeRigOptions{.roles = {}, .flags = {}, .database = rig.database()});
  NostrClient recipient(second.url());
  NostrClient outsider(second.url());
  EXPECT_TRUE(recipient.authenticate(bob).accepted);
  for (auto* subscriber : {&recipient, &outsider}) subscriber->request("s", kGlobal);
  for (const nostr::Kind kind : nostr::kPrivateKinds) {
    const auto event = wrap_for(bob, kind);
    store(event);
    EXPECT_EQ(recipient.live("s"), event.json());
  }
  const auto open = global_note(alice, "open");
  store(open);
  EXPECT_EQ(outsider.live("s"), open.json());
}

TEST_F(PrivateTest, WhoAsksForNothingElseIsToldToAuthenticate) {
  const auto told = "auth-required: authenticate first";
  const auto wraps = global_and(fmt::format(R"("kinds":[1059,21059],"#p":["{}"])", hex_of(bob)));
  EXPECT_EQ(client.stored(wraps).closed, told);
  EXPECT_EQ(client.stored(wraps + "," + global_and(R"("kinds":[4])")).closed, told);
  EXPECT_EQ(client.count("c", wraps), fmt::format(R"(["CLOSED","c","{}"])", told));
  EXPECT_EQ(client.stored(wraps + "," + kGlobal).closed, "");
  EXPECT_EQ(client.stored(global_and(R"("kinds":[1,1059])")).closed, "");
  // The rule for topics comes first.
  EXPECT_EQ(client.stored(R"({"kinds":[1059]})").closed, "invalid: #t required");
  EXPECT_TRUE(client.authenticate(bob).accepted);
  EXPECT_EQ(client.stored(wraps).closed, "");
}

TEST_F(PrivateTest, GiftWrapsBelongToATopicLikeAnyEvent) {
  EXPECT_EQ(refusal_of(note(alice, "sealed", {{"p", hex_of(bob)}}, kWrap)), "invalid: missing topic");
}

TEST_F(PrivateTest, RecipientIsWhomAPTagNamesByTheWholeKey) {
  store(wrap_for(alice, kWrap, {{"P", hex_of(bob)}, {"e", hex_of(bob)}, {"p", hex_of(bob).substr(0, 63)}}));
  EXPECT_TRUE(client.authenticate(bob).accepted);
  EXPECT_THAT(client.stored(kGlobal).ids, IsEmpty());
  EXPECT_EQ(client.count("c", kGlobal), R"(["COUNT","c",{"count":0}])");
}

TEST(PrivateIndexTest, TheIndexHoldsNoneOfThemAndNoSearchFindsThem) {
  RelayRig rig(NodeRigOptions{.roles = {"index"}, .flags = kOpen});
  NostrClient client(rig.url());
  const auto alice = SecretKey::generate();
  EXPECT_TRUE(client.authenticate(alice).accepted);
  const auto open = note(alice, "secret word", {});
  store_at(client, open);
  for (const nostr::Kind kind : {nostr::kDirectMessage, kWrap}) {
    store_at(client, note(alice, "secret word", {{"p", hex_of(alice)}}, kind));
  }
  rig.await_index();
  EXPECT_EQ(rig.value("SELECT count(*) FROM cn_search.post_search_documents"), "1");
  EXPECT_THAT(client.stored(R"({"search":"secret"})").ids, ElementsAre(hex_of(open)));
  EXPECT_THAT(client.stored(R"({"search":"secret","kinds":[4,1059]})").ids, IsEmpty());
}

}  // namespace
}  // namespace todoke::test
