// Nodes among themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gossip/rig.hpp"
#include "harness/run_task.hpp"

namespace todoke::test {
namespace {

using nostr::SecretKey;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kGlobalFilter = R"({"#t":["kukuri:global"],"limit":0})";
constexpr const char* kTaken = R"(taken_total{outcome="new"})";

TEST(GossipBridge, WhatTheNodeAndItsApiPublishGoesOutByGossip) {
  Line line;
  NostrClient at_c(line.c.node().url());
  at_c.request("live", kGlobalFilter);
  for (const auto from : {outbox::From::api, outbox::From::node}) {
    const auto event = note(SecretKey::generate(), "published");
    const auto published = run_task([&] {
      return line.a.node().events().publish(std::string(event.json()), from, std::nullopt,
                                            Deadline::after(kPatience));
    });
    EXPECT_EQ(published.kind, outbox::Published::Kind::stored);
    EXPECT_EQ(id_in(at_c.live("live")), event.id().hex());
  }
}

TEST(GossipBridge, WhatANodeSaysOfItselfReachesOtherNodes) {
  GossipNode a(Flags{{"bootstrap.enabled", "on"}});
  GossipNode b;
  b.add_peer(a.peer());
  b.wait_for_neighbours(1);
  a.wait_for_neighbours(1);
  NostrClient at_b(b.node().url());
  at_b.request("live", R"({"#t":["kukuri:global"],"kinds":[39000],"limit":0})");
  a.node().change({{"bootstrap.jurisdiction", "JP"}});
  EXPECT_THAT(at_b.live("live"), HasSubstr(R"(\"jurisdiction\":\"JP\")"));
}

TEST(GossipBridge, AnEventCrossesALineOfNodesOnce) {
  Line line;
  NostrClient at_c(line.c.node().url());
  at_c.request("live", kGlobalFilter);
  NostrClient at_a(line.a.node().url());
  const auto event = note(SecretKey::generate(), "hello");
  const auto last = note(SecretKey::generate(), "the last");

  EXPECT_TRUE(at_a.publish(event).accepted);
  EXPECT_EQ(id_in(at_c.live("live")), event.id().hex());
  EXPECT_TRUE(at_a.publish(last).accepted);
  EXPECT_EQ(id_in(at_c.live("live")), last.id().hex());

  for (auto* node : {&line.a, &line.b, &line.c}) {
    EXPECT_TRUE(node->await_stored(event));
    EXPECT_EQ(node->gossip("lagged_total"), 0);
  }
  // No loop: who made it sent each once, the others took each once and sent nothing.
  EXPECT_EQ(line.a.gossip("sent_total"), 2);
  EXPECT_EQ(line.a.gossip(kTaken), 0);
  for (auto* node : {&line.b, &line.c}) {
    EXPECT_TRUE(node->await_gossip(kTaken, 2));
    EXPECT_EQ(node->gossip("sent_total"), 0);
    EXPECT_EQ(node->node().metric(R"(todoke_ingest_received_total{source="gossip"})"), 2);
  }
}

TEST(GossipBridge, AnEventGoesFromOneTopicOnceIntoTheOther) {
  GossipNode a;
  GossipNode b;
  GossipNode c;
  b.enable_topic(topic('1'));
  c.enable_topic(topic('1'));
  c.node().sql("DELETE FROM cn_relay.node_subscriptions WHERE topic_id = 'kukuri:global'");
  a.add_peer(b.peer());
  a.settle(1);
  c.add_peer(b.peer());
  c.settle(1);
  b.settle(2);

  NostrClient at_a(a.node().url());
  const auto event = note(SecretKey::generate(), "of two topics", {{"t", kGlobalTopic}, {"t", topic('1')}});
  EXPECT_TRUE(at_a.publish(event).accepted);

  EXPECT_TRUE(c.await_gossip(kTaken, 1));
  EXPECT_TRUE(b.await_gossip("sent_total", 1));
  EXPECT_EQ(c.gossip("sent_total"), 0);
  EXPECT_EQ(a.gossip("sent_total"), 1);
}

TEST(GossipBridge, OfSeveralRelaysOnADatabaseTheOneThatTookAnEventSendsIt) {
  GossipNode b;
  GossipNode first;
  GossipNode second({}, first.node().database());
  first.add_peer(b.peer());
  first.settle(1);
  second.settle(1);
  b.settle(2);
  NostrClient at_second(second.node().url());
  at_second.request("live", kGlobalFilter);
  NostrClient at_first(first.node().url());
  const auto event = note(SecretKey::generate(), "of the first");
  EXPECT_TRUE(at_first.publish(event).accepted);
  EXPECT_EQ(id_in(at_second.live("live")), event.id().hex());
  EXPECT_TRUE(b.await_gossip(kTaken, 1));
  EXPECT_TRUE(first.await_gossip("sent_total", 1));
  EXPECT_EQ(second.gossip("sent_total"), 0);
}

TEST(GossipBridge, EphemeralEventsTravelAndAreNotStored) {
  Line line;
  NostrClient at_c(line.c.node().url());
  at_c.request("live", kGlobalFilter);
  NostrClient at_a(line.a.node().url());
  const auto event = note(SecretKey::generate(), "for a moment", {{"t", kGlobalTopic}}, 20'001);
  EXPECT_TRUE(at_a.publish(event).accepted);
  EXPECT_EQ(id_in(at_c.live("live")), event.id().hex());
  EXPECT_FALSE(line.c.is_stored(event));
}

TEST(GossipBridge, WhatAnOperatorHasBlockedIsNotTakenFromANeighbourWhoIsNotBlamed) {
  GossipNode a;
  GossipNode b;
  const auto spammer = SecretKey::generate();
  b.node().sql("INSERT INTO cn_relay.blocks (kind, value) VALUES ('pubkey', '" + spammer.pubkey().hex() +
               "')");
  EXPECT_TRUE(b.node().await_metric(R"(todoke_blocks{kind="pubkey"})", 1));
  a.add_peer(b.peer());
  a.wait_for_neighbours(1);
  NostrClient at_a(a.node().url());
  const auto blocked = note(spammer, "blocked there");
  const auto other = note(SecretKey::generate(), "of another");
  EXPECT_TRUE(at_a.publish(blocked).accepted);
  EXPECT_TRUE(at_a.publish(other).accepted);
  EXPECT_TRUE(b.await_stored(other));
  EXPECT_TRUE(b.node().await_metric(R"(todoke_ingest_rejected_total{reason="author_blocked"})", 1));
  EXPECT_FALSE(b.is_stored(blocked));
}

TEST(GossipBridge, WhatIsNotPublicStaysOnItsNode) {
  GossipNode a;
  GossipNode b;
  a.add_peer(b.peer());
  b.settle(1);
  a.settle(1);
  NostrClient at_a(a.node().url());
  const auto key = SecretKey::generate();
  EXPECT_TRUE(at_a.authenticate(key).accepted);
  const auto secret = note(key, "secret", {{"t", kGlobalTopic}, {"scope", "friend"}, {"epoch", "1"}});
  const auto open = note(SecretKey::generate(), "open");
  EXPECT_TRUE(at_a.publish(secret).accepted);
  EXPECT_TRUE(at_a.publish(open).accepted);
  EXPECT_TRUE(b.await_stored(open));
  EXPECT_EQ(b.gossip("received_total"), 1);
  EXPECT_FALSE(b.is_stored(secret));
}

TEST(GossipBridge, ATopicThatIsEnabledLaterIsJoinedWithoutARestart) {
  GossipNode a;
  GossipNode b;
  a.add_peer(b.peer());
  a.wait_for_neighbours(1);
  a.enable_topic(topic('2'));
  b.enable_topic(topic('2'));
  EXPECT_TRUE(a.await_gossip("topics", 2));
  EXPECT_TRUE(b.await_gossip("topics", 2));
  ASSERT_TRUE(
      await([&] { return a.node().ask_internal("/gossip").find(R"("topics":2}])") != std::string::npos; }));

  a.settle(1, 2);
  b.settle(1, 2);
  NostrClient at_a(a.node().url());
  const auto event = note(SecretKey::generate(), "new topic", {{"t", topic('2')}});
  EXPECT_TRUE(at_a.publish(event).accepted);
  EXPECT_TRUE(b.await_gossip(kTaken, 1));
}

TEST(GossipBridge, LowPriorityTopicsAreLeftUnderPressureAndJoinedAgain) {
  GossipNode a;
  a.enable_topic(topic('3'), R"({"priority": "low"})");
  ASSERT_TRUE(a.await_gossip("topics", 2));
  a.node().press(2);
  EXPECT_TRUE(a.await_gossip("topics", 1));
  a.node().press(1);
  EXPECT_TRUE(a.await_gossip("topics", 2));
}

TEST(GossipBridge, APeerThatCantBeReachedHoldsUpNobody) {
  std::string gone;
  {
    const GossipNode node;
    gone = node.peer();
  }
  GossipNode a;
  GossipNode b;
  a.add_peer(gone);
  a.add_peer(b.peer());
  a.settle(1);
  b.settle(1);
  NostrClient at_a(a.node().url());
  EXPECT_TRUE(at_a.publish(note(SecretKey::generate(), "hello")).accepted);
  EXPECT_TRUE(b.await_gossip(kTaken, 1));
}

TEST(GossipBridge, APeerThatIsRemovedIsNoNeighbourAnyMore) {
  GossipNode a;
  GossipNode b;
  a.add_peer(b.peer());
  a.wait_for_neighbours(1);
  a.node().sql("DELETE FROM cn_relay.gossip_peers");
  EXPECT_TRUE(a.await_gossip("neighbours", 0));
}

TEST(GossipBridge, ABlockedNodeIsCutOffWhileItRuns) {
  GossipNode a;
  GossipNode b;
  b.add_peer(a.peer());
  a.wait_for_neighbours(1);
  a.node().change({{"gossip.blocked", b.peer().substr(0, 64)}});
  EXPECT_TRUE(a.await_gossip("neighbours", 0));
}

TEST(GossipBridge, ANodeThatStopsAndStartsAgainIsFound) {
  GossipNode a;
  GossipNode b;
  b.add_peer(a.peer());
  a.wait_for_neighbours(1);
  const auto id = b.peer().substr(0, 64);
  b.node().stop();
  EXPECT_TRUE(a.await_gossip("neighbours", 0));
  b.node().start();
  EXPECT_EQ(b.peer().substr(0, 64), id);
  b.settle(1);
  NostrClient at_a(a.node().url());
  EXPECT_TRUE(at_a.publish(note(SecretKey::generate(), "again")).accepted);
  EXPECT_TRUE(b.await_gossip(kTaken, 1));
}

}  // namespace
}  // namespace todoke::test
