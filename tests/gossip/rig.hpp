// Nodes with gossip on loopback, each with a database and a data folder of its own, and a plain gossip peer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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
  explicit GossipNode(Flags flags = {});

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
  [[nodiscard]] bool is_stored(const nostr::Event& event) const;
  // Once, that is.
  [[nodiscard]] bool await_stored(const nostr::Event& event) const;

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
