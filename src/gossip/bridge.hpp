// The bridge between the relay and the gossip network. It joins the gossip of the node's topics, gives the
// relay what comes, and sends what the relay took.
//
//    network ──▶ inbox ──▶ limits of the neighbour ──▶ relay: parse, rules, signature ──▶ writer
//    relay, after the commit ──▶ destinations (policy.hpp) ──▶ out queue ──▶ pace ──▶ network
//
// Lives on a loop of its own: signatures are checked here, and nothing of the relay waits for it. While the
// writer is full the inbox is not read, and drops what does not fit. Gossip has no history: what it has lost,
// or what a node missed while it was away, is filled from the stores of its neighbours (filler.hpp).
//
// What clients have brought in the last minute before a start may not have been sent: it is sent once more.
// Receivers know it by its id.
//
// Topics that are low priority are left while the node is pressed (outbox/pressure.hpp), and joined again.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "gossip/endpoint.hpp"
#include "gossip/filler.hpp"
#include "gossip/metrics.hpp"
#include "gossip/neighbours.hpp"
#include "gossip/node_key.hpp"
#include "gossip/pace.hpp"
#include "gossip/peer_book.hpp"
#include "gossip/peer_limits.hpp"
#include "gossip/queues.hpp"
#include "gossip/recent.hpp"
#include "gossip/retry.hpp"
#include "outbox/gossip_port.hpp"
#include "outbox/pressure.hpp"

namespace todoke::gossip {

struct BridgeParts {
  const Config& config;
  const Clock& clock;
  Executor executor;
  PeerBook& peers;
  const outbox::Pressure& pressure;
  HealthBoard& health;
  metrics::Registry& metrics;
  std::filesystem::path folder;       // of the node key
  std::size_t message_bytes_max = 0;  // that of an event
  bool loopback = false;              // the default address is on loopback
  bool rates = true;                  // limits.rates
};

class Bridge final : public PeriodicService, public outbox::GossipOut, private EndpointListener {
 public:
  explicit Bridge(BridgeParts parts);
  ~Bridge() override;

  // Once, before start(). The bridge does not own them.
  void attach(std::weak_ptr<outbox::GossipIn> relay, std::weak_ptr<outbox::FillSource> store);

  void took(outbox::TakenEvent taken) override;
  void filled(const std::vector<std::string>& topics) override;
  void topics_changed() override;
  // From anywhere: what holds from now on.
  void change(const Config& config);

  // From anywhere; a second old at the most. {"node_id", "addresses", "peer", "peers", "neighbours",
  // "topics"}.
  [[nodiscard]] std::string info_json() const { return *info_.load(); }

  [[nodiscard]] bool essential() const override { return false; }
  Task<void> start() override;
  Task<void> run() override;

 private:
  // What may change while it runs.
  struct Settings {
    PeerRates rates;
    double sent_per_second = 0;
    std::vector<NodeId> blocked;
    FillerSettings fill;
  };
  struct Channel {
    std::string topic;
    bool joined = false;
    Retry retry;
  };
  struct Dialled {
    Peer peer;
    bool is_known = false;  // the endpoint has its address
    Retry retry;
  };

  void on_message(const ChannelId& channel, const NodeId& from, std::string_view bytes) noexcept override;
  void on_neighbour(const ChannelId& channel, const NodeId& peer, bool is_up) noexcept override;
  void on_lag(const ChannelId& channel) noexcept override;
  void on_ended(const ChannelId& channel) noexcept override;
  void on_known(const NodeId& peer) noexcept override;
  void on_question(const NodeId& from, std::uint64_t number, std::string_view bytes) noexcept override;
  void on_answer(std::uint64_t number, std::optional<std::string_view> bytes) noexcept override;

  Settings settings_from(const Config& config) const;
  void listen();
  Task<void> round(RoundCause cause) override;
  void look_soon();
  void keep_house(const outbox::GossipIn& relay);
  void follow_topics(const outbox::GossipIn& relay);
  void forget_ended();
  void follow_peers();
  void join_again();
  void join_known();
  Task<void> read_unsent();
  void send_again();
  void tell_state();
  // Both: whether more is to be done at once.
  bool take_in(outbox::GossipIn& relay);
  bool send_out();
  void take_message(outbox::GossipIn& relay, const Arrival& arrival);
  bool send_current();
  // A channel's neighbours have to ask for it: it was not sent.
  void not_sent(const std::string& topic, std::string_view why);
  [[nodiscard]] bool has_room() const { return rooms_ == fulls_; }

  const Clock& clock_;
  PeerBook& peers_;
  const outbox::Pressure& pressure_;
  HealthBoard& health_;
  const std::filesystem::path folder_;
  const std::string listen_on_;
  const bool may_take_another_port_;
  EndpointOptions endpoint_options_;
  const bool rates_;
  GossipMetrics metrics_;
  std::weak_ptr<outbox::GossipIn> relay_;
  std::weak_ptr<outbox::FillSource> store_;

  // Shared with the endpoint's and the relay's threads.
  Inbox inbox_{kInboxLimits};
  OutQueue out_{kOutLimits};
  Neighbours neighbours_;
  Filler filler_;
  std::atomic<std::uint64_t> rooms_ = 0;  // times that the writer had room again
  std::atomic<bool> house_is_due_ = true;
  std::atomic<bool> topics_are_due_ = true;
  std::atomic<bool> filler_is_due_ = false;
  SharedValue<Settings> settings_;
  SharedValue<std::string> info_;
  std::mutex told_mutex_;
  std::vector<NodeId> known_;     // each dialled by us
  std::vector<ChannelId> ended_;  // each joined by us

  // The executor's own.
  std::shared_ptr<const Settings> held_;  // the settings that are in force
  std::uint64_t fulls_ = 0;               // times that the writer was full
  bool pressed_ = false;
  PeerLimits limits_;
  Pace pace_;
  RecentArrivals recent_;
  HashMap<ChannelId, Channel> channels_;
  std::vector<Dialled> dialled_;
  std::optional<Outgoing> current_;
  std::vector<outbox::TakenEvent> unsent_;  // maybe, before the start
  SteadyTime unsent_until_{};
  SteadyTime current_since_{};
  SteadyTime house_at_{};
  NodeKey key_;
  std::optional<NodeId> id_;
  std::unique_ptr<Endpoint> endpoint_;  // while it runs
};

}  // namespace todoke::gossip
