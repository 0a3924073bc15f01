#include "gossip/rig.hpp"

#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/json_value.hpp"
#include "nostr/topics.hpp"

namespace todoke::test {
namespace {

Flags with_gossip(const std::string& folder, Flags flags) {
  Flags all{{"gossip.enabled", "on"}, {"gossip.listen", "127.0.0.1:0"}, {"data_dir", folder}};
  for (auto& flag : flags) all.push_back(std::move(flag));
  return all;
}

std::string channel_hex(const std::string& topic) {
  return to_hex(nostr::gossip_topic_id(nostr::TopicId::from(topic).value()));
}

std::string make_pipe(const std::filesystem::path& folder) {
  auto path = (folder / "commands").string();
  if (mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("mkfifo");
  return path;
}

}  // namespace

std::string topic(char digit) {
  return "kukuri:" + std::string(64, digit);
}

GossipNode::GossipNode(Flags flags)
    : node_(std::make_unique<NodeRig>(NodeRigOptions{
          .roles = {"relay"}, .flags = with_gossip(folder_.path().string(), std::move(flags))})) {}

std::string GossipNode::peer() const {
  const auto info = read_json(node_->ask_internal("/gossip"));
  if (!info) throw std::runtime_error("no answer of /gossip");
  return info->member("peer")->text;
}

void GossipNode::add_peer(const std::string& peer) {
  const auto at = peer.find('@');
  node_->sql(fmt::format("INSERT INTO cn_relay.gossip_peers (node_id, address) VALUES ('{}', '{}')",
                         peer.substr(0, at), peer.substr(at + 1)));
}

void GossipNode::enable_topic(const std::string& topic, const std::string& policy) {
  node_->sql(
      fmt::format("INSERT INTO cn_relay.node_subscriptions (topic_id, enabled, pinned, ingest_policy) "
                  "VALUES ('{}', true, true, '{}')",
                  topic, policy));
}

double GossipNode::gossip(const std::string& series) const {
  return node_->metric("todoke_gossip_" + series);
}

bool GossipNode::await_gossip(const std::string& series, double value) const {
  return node_->await_metric("todoke_gossip_" + series, value);
}

void GossipNode::wait_for_neighbours(int count) const {
  wait_until("neighbours", [&] { return gossip("neighbours") >= count; });
}

bool GossipNode::is_stored(const nostr::Event& event) const {
  return node_->value(fmt::format("SELECT count(*) FROM cn_relay.event_dedupe WHERE event_id = '{}'",
                                  event.id().hex())) == "1";
}

bool GossipNode::await_stored(const nostr::Event& event) const {
  return await([&] { return is_stored(event); });
}

Line::Line(const std::string& topic) {
  for (auto* node : {&a, &b, &c}) {
    if (topic != kGlobalTopic) node->enable_topic(topic);
  }
  a.add_peer(b.peer());
  a.wait_for_neighbours(1);
  c.add_peer(b.peer());
  c.wait_for_neighbours(1);
  b.wait_for_neighbours(2);
}

ForeignPeer::ForeignPeer(const std::string& dials, const std::string& topic)
    : commands_(open(make_pipe(folder_.path()).c_str(), O_RDWR | O_CLOEXEC)),
      process_({TODOKE_GOSSIP_PEER, channel_hex(topic), (folder_.path() / "commands").string(), dials}, {}) {
  process_.wait_for_output("up ");
}

void ForeignPeer::send(const std::string& line) {
  const auto text = line + "\n";
  if (write(commands_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("the peer does not read");
}

}  // namespace todoke::test
