// What gossip loses, or what a node missed, comes in the end: from the stores of neighbours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gossip/loss.hpp"
#include "gossip/rig.hpp"

namespace todoke::test {
namespace {

using nostr::SecretKey;

constexpr const char* kFilled = R"(filled_total{outcome="new"})";
constexpr const char* kDone = R"(fills_total{outcome="done"})";

// Messages of all nodes of the process are lost, as long as it lives.
class Losing {
 public:
  explicit Losing(std::uint32_t every) { gossip::lost_every = every; }
  ~Losing() { gossip::lost_every = 0; }
  Losing(const Losing&) = delete;
  Losing& operator=(const Losing&) = delete;
};

double lost(const GossipNode& node) {
  return node.gossip(R"(dropped_total{why="test"})");
}

TEST(GossipFill, ANodeThatJoinsLateGetsWhatItsNeighbourHasStored) {
  GossipNode a;
  GossipNode b;
  publish_all(a, notes(250));
  b.add_peer(a.peer());
  b.wait_for_stored(250);
  EXPECT_EQ(b.gossip("received_total"), 0);
  EXPECT_EQ(b.gossip(kFilled), 250);
  EXPECT_EQ(b.node().value("SELECT count(*) FROM cn_relay.events WHERE source = 'backfill'"), "250");
  EXPECT_EQ(b.gossip("sent_total"), 0) << "what was filled goes round by no gossip";
}

TEST(GossipFill, WhatTheMiddleOfALineMissedReachesItAndTheNodeBehindIt) {
  Line line;
  line.b.node().stop();
  NostrClient at_c(line.c.node().url());
  at_c.request("live", R"({"#t":["kukuri:global"],"limit":0})");
  NostrClient at_a(line.a.node().url());
  const auto missed = note(SecretKey::generate(), "missed");
  EXPECT_TRUE(at_a.publish(missed).accepted);
  line.b.node().start();
  EXPECT_EQ(id_in(at_c.live("live")), missed.id().hex());
  EXPECT_TRUE(line.b.is_stored(missed));
}

TEST(GossipFill, WhatIsNotForEverybodyIsNotGiven) {
  GossipNode a;
  GossipNode b;
  NostrClient at_a(a.node().url());
  const auto key = SecretKey::generate();
  EXPECT_TRUE(at_a.authenticate(key).accepted);
  EXPECT_TRUE(
      at_a.publish(note(key, "secret", {{"t", kGlobalTopic}, {"scope", "friend"}, {"epoch", "1"}})).accepted);
  EXPECT_TRUE(at_a.publish(note(key, "mine to bring", {{"t", kGlobalTopic}, {"-"}})).accepted);
  const auto open = note(key, "open");
  EXPECT_TRUE(at_a.publish(open).accepted);
  b.add_peer(a.peer());
  EXPECT_TRUE(b.await_stored(open));
  b.settle(1);
  EXPECT_EQ(b.stored(), 1);
}

TEST(GossipFill, ATopicThatAllowsNoBackfillIsNotFilled) {
  GossipNode a;
  GossipNode b;
  publish_all(a, notes(1));
  b.node().sql("UPDATE cn_relay.node_subscriptions SET ingest_policy = '{\"allow_backfill\": false}'");
  b.add_peer(a.peer());
  b.settle(1);
  EXPECT_EQ(b.stored(), 0);
}

TEST(GossipFill, ANodeUnderPressureAsksForNothingUntilItIsOver) {
  GossipNode a;
  GossipNode b;
  publish_all(a, notes(1));
  b.node().press(1);
  b.add_peer(a.peer());
  a.settle(1);  // it has asked the other one meanwhile, which answers
  EXPECT_EQ(b.gossip("fill_rounds_total"), 0);
  b.node().press(0);
  b.wait_for_stored(1);
}

TEST(GossipFill, WhatThisNodeRefusesIsNotFetchedAgain) {
  GossipNode a(Flags{{"gossip.reconcile_every", "1s"}});
  GossipNode b(Flags{{"gossip.reconcile_every", "1s"}});
  const auto spammer = SecretKey::generate();
  b.node().sql("INSERT INTO cn_relay.blocks (kind, value) VALUES ('pubkey', '" + spammer.pubkey().hex() +
               "')");
  ASSERT_TRUE(b.node().await_metric(R"(todoke_blocks{kind="pubkey"})", 1));
  NostrClient at_a(a.node().url());
  EXPECT_TRUE(at_a.publish(note(spammer, "blocked there")).accepted);
  b.add_peer(a.peer());
  ASSERT_TRUE(await([&] { return b.gossip(kDone) >= 3; }));
  EXPECT_EQ(b.gossip(R"(filled_total{outcome="refused"})"), 1);
}

TEST(GossipFill, WhatWasTakenInTheLastMinuteIsSentAgainAfterAStart) {
  GossipNode node;
  NostrClient client(node.node().url());
  const auto event = note(SecretKey::generate(), "before the start");
  EXPECT_TRUE(client.publish(event).accepted);
  node.node().stop();
  node.node().start();
  ForeignPeer peer(node.peer());
  peer.wait_for("got " + std::string(event.json()));
  EXPECT_EQ(node.gossip("sent_again_total"), 1);
  EXPECT_EQ(node.gossip("sent_total"), 1);
}

TEST(GossipFill, ABurstOfTwentyThousandEventsArrivesAtTheEndOfALine) {
  constexpr int kBurst = 20'000;
  const Flags fast{{"gossip.sent_per_second", "100000"}, {"gossip.reconcile_every", "1s"}};
  GossipNode a(fast);
  GossipNode b(fast);
  GossipNode c(fast);
  b.add_peer(a.peer());
  b.add_peer(c.peer());
  a.settle(1);
  c.settle(1);
  b.settle(2);
  publish_all(a, notes(kBurst));
  b.wait_for_stored(kBurst);
  c.wait_for_stored(kBurst);
}

TEST(GossipFill, TenNodesInARingThatLoseMessagesHaveEverythingInTheEnd) {
  constexpr std::size_t kNodes = 10;
  constexpr int kEach = 30;
  std::vector<std::unique_ptr<GossipNode>> ring;
  for (std::size_t i = 0; i < kNodes; ++i)
    ring.push_back(std::make_unique<GossipNode>(Flags{{"gossip.reconcile_every", "1s"}}));
  for (std::size_t i = 0; i < kNodes; ++i) ring[i]->add_peer(ring[(i + 1) % kNodes]->peer());
  for (const auto& node : ring) node->wait_for_neighbours(2);
  {
    const Losing one_of_twenty(20);
    for (const auto& node : ring) publish_all(*node, notes(kEach));
    for (const auto& node : ring) node->wait_for_stored(static_cast<int>(kNodes) * kEach);
  }
  double all_lost = 0;
  for (const auto& node : ring) all_lost += lost(*node);
  EXPECT_GT(all_lost, kEach);
}

}  // namespace
}  // namespace todoke::test
