#include "gossip/policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/metrics.hpp"
#include "gossip/pace.hpp"
#include "gossip/peer_limits.hpp"
#include "gossip/queues.hpp"
#include "gossip/retry.hpp"
#include "nostr/signature.hpp"

namespace todoke::gossip {
namespace {

using namespace std::chrono_literals;
using outbox::TakenEvent;
using testing::ElementsAre;
using testing::IsEmpty;

const std::string kA = "kukuri:global";
const std::string kB = "kukuri:" + std::string(64, 'b');

using Tags = std::vector<std::vector<std::string>>;

nostr::Event event_of(nostr::Kind kind, Tags tags) {
  return nostr::sign_event({1'700'000'000, kind, std::move(tags), "text"}, nostr::SecretKey::generate());
}

TakenEvent taken(std::vector<std::string> topics, Tags tags, nostr::Kind kind = 1) {
  TakenEvent event;
  event.event = std::make_shared<const nostr::Event>(event_of(kind, std::move(tags)));
  event.topics = std::move(topics);
  return event;
}

TEST(GossipPolicy, AnEventOfAClientGoesIntoAllItsTopics) {
  EXPECT_THAT(destinations(taken({kA, kB}, {{"t", kA}, {"t", kB}})), ElementsAre(kA, kB));
}

TEST(GossipPolicy, NothingGoesBackWhereItCameFromButIntoTheOtherTopics) {
  auto event = taken({kA, kB}, {{"t", kA}, {"t", kB}});
  event.came_by = kA;
  EXPECT_THAT(destinations(event), ElementsAre(kB));
  auto single = taken({kA}, {{"t", kA}});
  single.came_by = kA;
  EXPECT_THAT(destinations(single), IsEmpty());
}

TEST(GossipPolicy, ATopicThatTheNodeDoesNotTakeGetsNothing) {
  EXPECT_THAT(destinations(taken({kA}, {{"t", kA}, {"t", kB}})), ElementsAre(kA));
}

TEST(GossipPolicy, ATopicThatTheEventDoesNotNameGetsNothing) {
  EXPECT_THAT(destinations(taken({kA}, {})), IsEmpty());
}

TEST(GossipPolicy, WhatTheNodeSaysOfItselfGoesOutWhenItNamesATopic) {
  const Tags named{{"k", "kukuri"}, {"ver", "1"}, {"d", "descriptor"}, {"t", kA}};
  EXPECT_THAT(destinations(taken({kA}, named, 39'000)), ElementsAre(kA));
  EXPECT_THAT(destinations(taken({kA}, named, 39'001)), ElementsAre(kA));
}

TEST(GossipPolicy, WhatIsNotPublicStays) {
  auto event = taken({kA}, {{"t", kA}});
  event.non_public = true;
  EXPECT_THAT(destinations(event), IsEmpty());
}

TEST(GossipPolicy, WhatOnlyItsAuthorMayBringStays) {
  EXPECT_THAT(destinations(taken({kA}, {{"t", kA}, {"-"}})), IsEmpty());
}

TEST(GossipPolicy, KindsBetweenClientsStay) {
  for (const auto kind : std::initializer_list<nostr::Kind>{39020, 39021, 39022})
    EXPECT_THAT(destinations(taken({kA}, {{"t", kA}, {"d", "x"}}, kind)), IsEmpty());
}

TEST(GossipPolicy, DirectMessagesAndGiftWrapsStay) {
  for (const auto kind : std::initializer_list<nostr::Kind>{4, 1059, 21059})
    EXPECT_THAT(destinations(taken({kA}, {{"t", kA}}, kind)), IsEmpty());
}

TEST(GossipPolicy, EphemeralEventsTravel) {
  EXPECT_THAT(destinations(taken({kA}, {{"t", kA}}, 20'001)), ElementsAre(kA));
}

TEST(GossipPace, IsEvenWithASmallBurst) {
  Pace pace(100);
  auto now = SteadyTime(1h);
  const auto count = [&] {
    int taken = 0;
    while (pace.take(now)) ++taken;
    return taken;
  };
  EXPECT_EQ(count(), 5);
  now += 20ms;
  EXPECT_EQ(count(), 2);
  now += 1h;
  EXPECT_EQ(count(), 5);
}

TEST(GossipRetry, WaitsLongerAndLonger) {
  Retry retry;
  auto now = SteadyTime(1h);
  EXPECT_TRUE(retry.is_due(now));
  EXPECT_FALSE(retry.is_due(now + 999ms));
  EXPECT_TRUE(retry.is_due(now += 1s));
  EXPECT_FALSE(retry.is_due(now + 1'999ms));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(retry.is_due(now += 15s));
  EXPECT_FALSE(retry.is_due(now + 14s));
  retry.reset();
  EXPECT_TRUE(retry.is_due(now));
}

TEST(GossipQueues, KeepTheOrderAndDropWhatDoesNotFit) {
  Inbox inbox({.items_max = 2, .bytes_max = 10});
  const ChannelId channel(ChannelId::Bytes{});
  const NodeId from(NodeId::Bytes{});
  const auto push = [&](const char* bytes) { return inbox.push({channel, from, bytes}); };
  EXPECT_EQ(push("first"), Inbox::Pushed::first);
  EXPECT_EQ(push("larger"), Inbox::Pushed::dropped);
  EXPECT_EQ(push("other"), Inbox::Pushed::more);
  EXPECT_EQ(push(""), Inbox::Pushed::dropped);
  const auto oldest = inbox.pop(1);
  ASSERT_EQ(oldest.size(), 1U);
  EXPECT_EQ(oldest.front().bytes, "first");
  EXPECT_EQ(push("third"), Inbox::Pushed::more);
  EXPECT_EQ(inbox.pop(9).size(), 2U);
  EXPECT_TRUE(inbox.pop(1).empty());
  EXPECT_EQ(push("fifth"), Inbox::Pushed::first);
}

class GossipPeerLimits : public testing::Test {
 protected:
  PeerLimits limits_of(double events_per_second, double refused_per_minute) {
    return {{.events_per_second = events_per_second, .refused_per_minute = refused_per_minute},
            clock_,
            registry_};
  }
  static NodeId peer(std::uint8_t number) {
    NodeId::Bytes bytes{};
    bytes[0] = number;
    return NodeId(bytes);
  }
  static int listened_to(PeerLimits& limits, const NodeId& from, int messages) {
    int count = 0;
    for (int i = 0; i < messages; ++i) count += limits.charge(from) == PeerLimits::Verdict::listen ? 1 : 0;
    return count;
  }
  ManualClock clock_;
  metrics::Registry registry_;
};

TEST_F(GossipPeerLimits, BoundEachNeighbourAndAll) {
  auto limits = limits_of(10, 600);
  EXPECT_EQ(listened_to(limits, peer(1), 100), 10);
  EXPECT_EQ(listened_to(limits, peer(2), 100), 10);
  EXPECT_EQ(listened_to(limits, peer(3), 100), 0);
  clock_.advance(1s);
  EXPECT_EQ(listened_to(limits, peer(3), 100), 10);
}

TEST_F(GossipPeerLimits, WhoBreaksRulesAgainAndAgainIsNotListenedToForAMinute) {
  auto limits = limits_of(1'000, 3);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(limits.refused(peer(1)));
  EXPECT_EQ(limits.charge(peer(1)), PeerLimits::Verdict::listen);
  EXPECT_TRUE(limits.refused(peer(1)));
  EXPECT_EQ(limits.charge(peer(1)), PeerLimits::Verdict::muted);
  EXPECT_EQ(limits.charge(peer(2)), PeerLimits::Verdict::listen);
  clock_.advance(60s);
  EXPECT_EQ(limits.charge(peer(1)), PeerLimits::Verdict::listen);
}

}  // namespace
}  // namespace todoke::gossip
