// A node and a plain iroh-gossip peer: they exchange events, and what is none costs the peer only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gossip/rig.hpp"

namespace todoke::test {
namespace {

using nostr::SecretKey;
using testing::HasSubstr;

std::string json_of(const nostr::Event& event) {
  return std::string(event.json());
}

std::string refused(const std::string& reason) {
  return "refused_total{reason=\"" + reason + "\"}";
}

constexpr const char* kNew = R"(taken_total{outcome="new"})";

TEST(GossipForeignPeer, SendsAndReceivesPlainEvents) {
  GossipNode node;
  ForeignPeer peer(node.peer());
  const auto theirs = note(SecretKey::generate(), "from outside");
  NostrClient client(node.node().url());
  client.request("live", R"({"#t":["kukuri:global"],"limit":0})");
  peer.send(json_of(theirs));
  EXPECT_EQ(id_in(client.live("live")), theirs.id().hex());

  node.wait_for_neighbours(1);
  const auto ours = note(SecretKey::generate(), "from the node");
  EXPECT_TRUE(client.publish(ours).accepted);
  peer.wait_for("got " + json_of(ours));
  EXPECT_EQ(node.gossip("sent_total"), 1);
}

TEST(GossipForeignPeer, WhatIsNoEventIsRefusedAndCounted) {
  GossipNode node;
  ForeignPeer peer(node.peer());
  const auto key = SecretKey::generate();
  const auto event = note(key, "good");

  auto unsigned_event = json_of(event);
  const auto sig = unsigned_event.find(R"("sig":")") + 7;
  unsigned_event[sig] = unsigned_event[sig] == '0' ? '1' : '0';
  auto other_id = json_of(note(key, "another"));
  const auto content = other_id.find("another");
  other_id.replace(content, 7, "changed");

  peer.send("garbage");
  peer.send(R"(["EVENT",{}])");
  peer.send(unsigned_event);
  peer.send(other_id);
  peer.send(json_of(note(key, "elsewhere", {{"t", topic('9')}})));
  peer.send(json_of(note(key, "no topic", {})));
  peer.send(json_of(note(key, "between clients",
                         {{"t", kGlobalTopic}, {"d", "x"}, {"k", "kukuri"}, {"ver", "1"}}, 39'020)));
  peer.send(json_of(event));

  EXPECT_TRUE(node.await_gossip(kNew, 1));
  EXPECT_TRUE(node.await_gossip("received_total", 8));
  EXPECT_EQ(node.gossip(refused("bad_signature")), 1);
  EXPECT_EQ(node.gossip(refused("bad_id")), 1);
  EXPECT_EQ(node.gossip(refused("other_topic")), 2);
  EXPECT_EQ(node.gossip(refused("p2p_only")), 1);
  EXPECT_TRUE(node.await_stored(event));
  EXPECT_EQ(node.node().value("SELECT count(*) FROM cn_relay.event_dedupe"), "1");
}

TEST(GossipForeignPeer, AReplayedEventIsKnown) {
  GossipNode node;
  const auto event = note(SecretKey::generate(), "again and again");
  for (int i = 0; i < 2; ++i) {
    ForeignPeer peer(node.peer());
    // The library itself drops the same bytes; blanks make them others.
    peer.send(json_of(event) + std::string(static_cast<std::size_t>(i), ' '));
    ASSERT_TRUE(node.await_gossip("received_total", i + 1));
  }
  EXPECT_TRUE(node.await_gossip(R"(taken_total{outcome="known"})", 1));
  EXPECT_EQ(node.gossip(kNew), 1);
  EXPECT_EQ(node.gossip("sent_total"), 0);
}

TEST(GossipForeignPeer, OneThatSendsTooLongAMessageIsReadNoMoreAndOthersAre) {
  GossipNode node;
  ForeignPeer large(node.peer());
  const auto after = note(SecretKey::generate(), "after the long one");
  large.send("!fill 1000000");
  large.send(json_of(after));
  ForeignPeer other(node.peer());
  const auto event = note(SecretKey::generate(), "good");
  other.send(json_of(event));
  EXPECT_TRUE(node.await_stored(event));
  EXPECT_EQ(node.gossip("received_total"), 1);
  EXPECT_FALSE(node.is_stored(after));
}

TEST(GossipForeignPeer, OneThatFloodsIsNotListenedToAndOthersAre) {
  GossipNode node({{"limits.rates", "on"}, {"gossip.refused_per_minute", "20"}});
  {
    ForeignPeer flooding(node.peer());
    flooding.send("!flood 500");
    EXPECT_TRUE(await([&] { return node.gossip(R"(dropped_total{why="muted"})") > 0; }));
    flooding.send(json_of(note(SecretKey::generate(), "too late")));
    EXPECT_TRUE(node.await_gossip("muted_total", 1));
    EXPECT_TRUE(await([&] { return node.gossip("received_total") >= 100; }));
    EXPECT_EQ(node.gossip(kNew), 0);
  }
  ASSERT_TRUE(node.await_gossip("neighbours", 0));
  ForeignPeer good(node.peer());
  good.send(json_of(note(SecretKey::generate(), "good")));
  EXPECT_TRUE(node.await_gossip(kNew, 1));
}

TEST(GossipForeignPeer, AQuestionIsAnsweredAndWhatIsNoneIsRefused) {
  GossipNode node;
  const auto event = note(SecretKey::generate(), "stored");
  NostrClient client(node.node().url());
  EXPECT_TRUE(client.publish(event).accepted);
  ForeignPeer peer(node.peer());
  peer.send("!ask garbage");
  peer.wait_for("no answer");
  EXPECT_TRUE(node.await_gossip(R"(questions_total{outcome="refused"})", 1));
  peer.send(R"(!ask ["REQ","fill",{"#t":["kukuri:global"],"ids":[")" + event.id().hex() + R"("]}])");
  peer.wait_for("answer [\"EVENT\",\"fill\"," + json_of(event));
  peer.send(R"(!ask ["REQ","fill",{"#t":[")" + topic('9') + R"("],"ids":[")" + event.id().hex() + R"("]}])");
  peer.wait_for(R"(answer ["CLOSED")");
}

}  // namespace
}  // namespace todoke::test
