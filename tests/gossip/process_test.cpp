// Nodes as processes, as a user starts them.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json_value.hpp"
#include "harness/await.hpp"
#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {
namespace {

using nostr::SecretKey;

constexpr const char* kNeighbours = "todoke_gossip_neighbours";

std::string p2p(NodeProcess& node, const std::vector<std::string>& words) {
  std::vector<std::string> command{todoke_binary(), "p2p"};
  command.insert(command.end(), words.begin(), words.end());
  const auto done = run_command(command, {"TODOKE_DATA_DIR=" + node.data_dir().string()});
  EXPECT_EQ(done.code, 0) << done.err;
  return done.out;
}

std::string peer_of(NodeProcess& node) {
  const auto info = read_json(p2p(node, {"info", "--json"}));
  return info ? info->member("peer")->text : std::string();
}

// The default of `up`: loopback, the usual port or a free one.
TEST(GossipProcess, TwoPastedPeerStringsMakeALineThatMissesNothingWhenItsMiddleIsKilled) {
  TempFolder folder_a;
  TempFolder folder_b;
  TempFolder folder_c;
  TodokeUp a(folder_a.path());
  auto b = std::make_unique<TodokeUp>(folder_b.path());
  TodokeUp c(folder_c.path());
  for (NodeProcess* node : std::initializer_list<NodeProcess*>{&a, b.get(), &c}) node->wait_ready();
  p2p(*b, {"add", peer_of(a)});
  p2p(*b, {"add", peer_of(c)});
  b->wait_for_metric(kNeighbours, 2);

  NostrClient at_a(a.url());
  NostrClient at_c(c.url());
  at_c.request("live", R"({"#t":["kukuri:global"],"limit":0})");
  const auto first = note(SecretKey::generate(), "first");
  EXPECT_TRUE(at_a.publish(first).accepted);
  EXPECT_EQ(id_in(at_c.live("live")), first.id().hex());

  b->process().kill(SIGKILL);
  b->process().wait();
  const auto missed = note(SecretKey::generate(), "while the middle was away");
  EXPECT_TRUE(at_a.publish(missed).accepted);
  b = std::make_unique<TodokeUp>(folder_b.path());
  b->wait_ready();
  b->wait_for_metric(kNeighbours, 2);
  // C may take its connection to the killed process for alive as long as one may be silent: half a minute.
  const auto stored = "SELECT count(*) FROM cn_relay.events WHERE event_id = '" + missed.id().hex() + "'";
  wait_until("what was missed at C", [&] { return c.sql(stored) == "1"; });
  EXPECT_EQ(id_in(at_c.live("live")), missed.id().hex());
  const auto second = note(SecretKey::generate(), "second");
  EXPECT_TRUE(at_a.publish(second).accepted);
  EXPECT_EQ(id_in(at_c.live("live")), second.id().hex());
  b->wait_for_metric(R"(todoke_gossip_taken_total{outcome="new"})", 1);
}

TEST(GossipProcess, AConfiguredPortThatIsInUseIsAnError) {
  TempFolder folder_a;
  TodokeUp a(folder_a.path());
  a.wait_ready();
  const auto peer = peer_of(a);
  const auto address = peer.substr(peer.find('@') + 1);
  TempFolder folder_b;
  const auto refused =
      run_command({todoke_binary(), "up", "--data_dir", folder_b.path().string(), "--server.listen",
                   "127.0.0.1:0", "--server.internal_listen", "127.0.0.1:0", "--gossip.listen", address});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.err.find("gossip can't listen on " + address), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace todoke::test
