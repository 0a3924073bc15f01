#include "gossip/rig.hpp"

#include <algorithm>
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

GossipNode::GossipNode(Flags flags, DatabasePtr database)
    : node_(std::make_unique<NodeRig>(
          NodeRigOptions{.roles = {"relay"},
                         .flags = with_gossip(folder_.path().string(), std::move(flags)),
                         .database = std::move(database)})) {}

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

void GossipNode::settle(int neighbours, int topics) const {
  wait_for_neighbours(neighbours);
  wait_until("comparisons", [&] {
    return gossip(R"(fills_total{outcome="done"})") >= neighbours * topics && gossip("fills") == 0;
  });
}

bool GossipNode::is_stored(const nostr::Event& event) const {
  return node_->value(fmt::format("SELECT count(*) FROM cn_relay.event_dedupe WHERE event_id = '{}'",
                                  event.id().hex())) == "1";
}

bool GossipNode::await_stored(const nostr::Event& event) const {
  return await([&] { return is_stored(event); });
}

int GossipNode::stored() const {
  return std::stoi(node_->value("SELECT count(*) FROM cn_relay.event_dedupe"));
}

void GossipNode::wait_for_stored(int count) const {
  for (int before = -1, now = stored(); now < count; now = stored()) {
    if (now == before) throw std::runtime_error(fmt::format("{} of {} events came", now, count));
    before = now;
    await([&] { return stored() > before; });
  }
}

std::vector<nostr::Event> notes(int count) {
  const auto key = nostr::SecretKey::generate();
  std::vector<nostr::Event> events;
  events.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) events.push_back(note(key, std::to_string(i)));
  return events;
}

void publish_all(GossipNode& node, const std::vector<nostr::Event>& events) {
  constexpr std::size_t kAtOnce = 200;
  NostrClient client(node.node().url());
  for (std::size_t first = 0; first < events.size(); first += kAtOnce) {
    const auto end = std::min(first + kAtOnce, events.size());
    for (auto i = first; i < end; ++i) client.send(fmt::format(R"(["EVENT",{}])", events[i].json()));
    for (auto i = first; i < end; ++i) {
      const auto answer = parse_ok(client.receive(R"(["OK")"));
      if (!answer.accepted) throw std::runtime_error("refused: " + answer.text);
    }
  }
}

Line::Line(const std::string& topic) {
  for (auto* node : {&a, &b, &c}) {
    if (topic != kGlobalTopic) node->enable_topic(topic);
  }
  const int topics = topic == kGlobalTopic ? 1 : 2;
  // Who dials is found again when it comes back on another port.
  b.add_peer(a.peer());
  b.add_peer(c.peer());
  a.settle(1, topics);
  c.settle(1, topics);
  b.settle(2, topics);
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
