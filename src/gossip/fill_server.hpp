// Answers what other nodes ask to fill what they missed (fill_wire.hpp): only about topics that this node
// takes, and only what gossip would have sent (policy.hpp). Every node that can connect may ask, as with the
// WebSocket; gossip.blocked keeps nodes out.
//
// Bounded: `kSetsMax` sets, one of a node, `kSetEventsMax` events each and `kEventsInAllMax` of all, 40 bytes
// an event; `kReadsMax` of them are read at once; a set without a question for `kSetIdleMax` goes. A node
// asks `kQuestionsPerSecond` questions. What does not fit is refused with `rate-limited:`. Not thread-safe.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/hash_table.hpp"
#include "gossip/fill_wire.hpp"
#include "gossip/ids.hpp"
#include "net/rate_limit.hpp"

namespace todoke::gossip {

class FillServer {
 public:
  static constexpr std::size_t kSetsMax = 64;
  static constexpr std::size_t kSetEventsMax = 1'000'000;
  static constexpr std::size_t kEventsInAllMax = 2'000'000;
  static constexpr std::size_t kReadsMax = 2;
  static constexpr std::chrono::seconds kSetIdleMax{120};
  static constexpr double kQuestionsPerSecond = 100;

  FillServer(const Clock& clock, bool rates, metrics::Registry& registry);

  // The answer; nothing for a NewsQuestion, which asks for none.
  Task<std::optional<std::string>> answer(std::shared_ptr<outbox::FillSource> store, NodeId from,
                                          FillQuestion question);
  // The topics that the node takes, from now on.
  void take_topics(HashSet<std::string> topics) { topics_ = std::move(topics); }

  [[nodiscard]] std::size_t sets() const { return sets_.size(); }

 private:
  struct Set {
    outbox::NegSetPtr events;
    SteadyTime used_at;
  };

  Task<std::optional<std::string>> open(outbox::FillSource& store, NodeId from, OpenQuestion question);
  std::optional<std::string> next(NodeId from, const NextQuestion& question);
  static Task<std::optional<std::string>> events(outbox::FillSource& store, EventsQuestion question);
  [[nodiscard]] std::optional<nostr::Reason> refusal(const NodeId& from, const FillQuestion& question);
  void drop_idle();
  [[nodiscard]] std::size_t events_in_all() const;

  const Clock& clock_;
  net::RateLimiter questions_;
  HashSet<std::string> topics_;
  HashMap<NodeId, Set> sets_;
  std::size_t reads_ = 0;
};

}  // namespace todoke::gossip
