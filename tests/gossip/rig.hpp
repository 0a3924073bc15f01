// Nodes with gossip on loopback, each with a database and a data folder of its own, and a plain gossip peer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "harness/node_rig.hpp"
#include "harness/nostr_client.hpp"
#include "harness/todoke_process.hpp"

namespace todoke::test {

inline constexpr const char* kGlobalTopic = "kukuri:global";
// kukuri: and 64 times the digit.
std::string topic(char digit);

class GossipNode {
 public:
  // `database` null: one of its own.
  explicit GossipNode(Flags flags = {}, DatabasePtr database = nullptr);

  NodeRig& node() { return *node_; }
  // node_id@127.0.0.1:port
  [[nodiscard]] std::string peer() const;
  // As `todoke p2p add` does.
  void add_peer(const std::string& peer);
  void enable_topic(const std::string& topic, const std::string& policy = "{}");
  // A series of todoke_gossip_…
  [[nodiscard]] double gossip(const std::string& series) const;
  [[nodiscard]] bool await_gossip(const std::string& series, double value) const;
  // At least so many.
  void wait_for_neighbours(int count) const;
  // So many neighbours, and they and this node have compared what they have of every topic that they share:
  // what is published now comes by gossip.
  void settle(int neighbours, int topics = 1) const;
  [[nodiscard]] bool is_stored(const nostr::Event& event) const;
  // Once, that is.
  [[nodiscard]] bool await_stored(const nostr::Event& event) const;
  [[nodiscard]] int stored() const;
  // Waits until so many are. Patient: tens of thousands take their time under a sanitizer.
  void wait_for_stored(int count) const;

 private:
  TempFolder folder_;
  std::unique_ptr<NodeRig> node_;
};

// A and B, and B and C know each other, but not A and C.
struct Line {
  explicit Line(const std::string& topic = kGlobalTopic);
  GossipNode a;
  GossipNode b;
  GossipNode c;
};

// Publishes over one connection, some hundred at a time.
void publish_all(GossipNode& node, const std::vector<nostr::Event>& events);
std::vector<nostr::Event> notes(int count);

// src/gossip/iroh/examples/peer.rs in the gossip of kukuri:global.
class ForeignPeer {
 public:
  explicit ForeignPeer(const std::string& dials, const std::string& topic = kGlobalTopic);

  // A message, or a command of the program: one line.
  void send(const std::string& line);
  void wait_for(const std::string& output) { process_.wait_for_output(output); }
  [[nodiscard]] std::string out() const { return process_.out(); }

 private:
  TempFolder folder_;
  Fd commands_;
  ChildProcess process_;
};

}  // namespace todoke::test
