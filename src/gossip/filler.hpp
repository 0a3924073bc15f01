// Fills what gossip has missed: compares what it has of a topic with a neighbour, by set reconciliation over
// the endpoint that they share, and fetches what is lacking; and answers neighbours that do the same
// (fill_server.hpp). It only fetches: what the other side lacks, that side asks for.
//
//   due (fill_schedule.hpp) ──▶ our ids ──▶ compare ──▶ fetch, 100 at a time ──▶ relay: parse, rules, writer
//        ▲──────── too many at once: the halves of the time ◀──┘
//
// What was filled went round by no gossip: when it is committed the node tells its neighbours in the topic
// (NEWS), and they compare in their turn.
//
// Topics whose ingest_policy allows no backfill are not filled. While the node is pressed nothing is
// (outbox/pressure.hpp).
//
// Bounded: `kFillsMax` neighbours are asked and `kAnswersMax` answered at once; a set of `kSetEventsMax`
// events takes 40 MB. What a neighbour gives and this node refuses is remembered (RecentArrivals) and not
// fetched again. The calls that say so come from anywhere, the others on the executor.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/loops.hpp"
#include "gossip/asking.hpp"
#include "gossip/fill_schedule.hpp"
#include "gossip/fill_server.hpp"
#include "gossip/metrics.hpp"
#include "gossip/neighbours.hpp"
#include "gossip/queues.hpp"
#include "gossip/recent.hpp"
#include "outbox/gossip_port.hpp"
#include "outbox/pressure.hpp"

namespace todoke::gossip {

struct FillerParts {
  Executor executor;
  const Clock& clock;
  const outbox::Pressure& pressure;
  const Neighbours& neighbours;
  GossipMetrics& metrics;
  bool rates = true;                // limits.rates
  std::function<void()> look_soon;  // look() is to be called; from anywhere
};

struct FillerSettings {
  std::chrono::milliseconds every{};
  std::chrono::milliseconds window{};
};

class Filler {
 public:
  static constexpr std::size_t kFillsMax = 3;
  static constexpr std::size_t kAnswersMax = 32;
  static constexpr std::size_t kTellsMax = 64;

  explicit Filler(FillerParts parts);

  void attach(std::weak_ptr<outbox::GossipIn> relay, std::weak_ptr<outbox::FillSource> store);
  // From now on, until finish() has ended.
  void begin(Endpoint& endpoint);
  Task<void> finish();

  void set(const FillerSettings& settings) { settings_ = settings; }
  void follow_topics(const HashMap<ChannelId, outbox::GossipTopic>& topics);
  // Begins what is due.
  void look();

  // From anywhere: messages of the channel were lost on their way in.
  void lost(const ChannelId& channel);
  // From anywhere: other nodes lack events of these topics that this one has.
  void has_news(const std::vector<std::string>& topics);
  // From anywhere.
  void on_question(const NodeId& from, std::uint64_t number, std::string_view bytes);
  void on_answer(std::uint64_t number, std::optional<std::string_view> bytes);

 private:
  enum class Step { done, too_many, stopped };
  // One neighbour, one topic.
  struct Fill {
    std::shared_ptr<outbox::GossipIn> relay;
    std::shared_ptr<outbox::FillSource> store;
    ChannelId channel;
    NodeId peer;
    std::shared_ptr<Signal> room;  // of the relay's writer
  };

  void follow_neighbours(SteadyTime now);
  void ask_for_lost(SteadyTime now);
  void tell_news(SteadyTime now);
  void begin_fills(SteadyTime now);
  void begin_answers();

  Task<void> run(FillSchedule::Job job);
  Task<bool> fill(const FillSchedule::Job& job);
  Task<Step> fill_span(const Fill& fill, const outbox::FillSpan& span);
  Task<Step> fetch(const Fill& fill, const std::string& topic, std::vector<nostr::EventId> ids);
  Task<Step> fetch_piece(const Fill& fill, const std::string& topic, std::vector<nostr::EventId> ids);
  // The verdict's id; nothing for what is no event.
  Task<std::optional<nostr::EventId>> take(const Fill& fill, const std::string& topic, std::string_view json);
  // The messages of the answer; nothing: there is none that can be read.
  Task<std::optional<std::vector<nostr::RelayMessage>>> ask(NodeId peer, std::string question);
  Task<void> tell(NodeId peer, std::string question);
  Task<void> answer(Question question);
  Task<std::optional<std::string>> answer_to(const Question& question);
  [[nodiscard]] bool may_fill() const { return !finishing_ && pressure_.level() == 0; }

  const Executor executor_;
  const Clock& clock_;
  const outbox::Pressure& pressure_;
  const Neighbours& neighbours_;
  GossipMetrics& metrics_;
  const std::function<void()> look_soon_;
  std::weak_ptr<outbox::GossipIn> relay_;
  std::weak_ptr<outbox::FillSource> store_;

  // Shared.
  BoundedQueue<Question> questions_{kQuestionLimits};
  std::mutex mutex_;
  HashSet<ChannelId> lost_;
  HashSet<std::string> news_;

  // The executor's own.
  Endpoint* endpoint_ = nullptr;
  bool finishing_ = false;
  FillerSettings settings_;
  HashMap<ChannelId, outbox::GossipTopic> topics_;
  std::uint64_t neighbours_version_ = 0;
  std::set<FillSchedule::Pair> pairs_;
  SteadyTime news_at_{};
  HashSet<std::string> told_;  // topics that neighbours were told of; bounded as the topics of the node
  FillSchedule schedule_;
  FillServer server_;
  Asking asking_;
  RecentArrivals unwanted_;
  Loops fills_;
  Loops answers_;
  Loops tells_;
};

}  // namespace todoke::gossip
