// Keeps what the node says of itself in effect in its relay: the descriptor and the services of its topics,
// signed by the node's key (documents.hpp). Looks when NOTIFY says that topics or keys have changed, when the
// configuration has, and every few minutes.
//
//   start   the keys: made, or read, and written to cn_bootstrap.keys
//   round   sign what is new, half over or says something else now ─▶ withdraw what is wanted no more
//             ─▶ note both in cn_bootstrap.hints ─▶ withdraw what the keys before a rotation have signed
//
// Promise: nothing is signed again without a reason, however many processes the node has: one of them does
// it, the one that holds a lock, for as long as it lives. The round after one that was cut off mends what
// that one left.
//
// Bounded: kTopicsMax topics; withdrawals of kWithdrawnAtOnce events; the newest kHintsMax hints stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "bootstrap/documents.hpp"
#include "bootstrap/node_keys.hpp"
#include "outbox/event_port.hpp"
#include "pg/connection.hpp"
#include "pg/listener.hpp"

namespace todoke::bootstrap {

struct PublisherParts {
  std::filesystem::path key_file;
  NodeFacts facts;
  std::shared_ptr<outbox::EventPort> events;
  pg::ConnectOptions database;
  pg::Listener& listener;
  const Clock& clock;
  metrics::Registry& metrics;
};

class Publisher final : public PeriodicService {
 public:
  static constexpr std::int32_t kTopicsMax = 10'000;
  static constexpr std::int32_t kWithdrawnAtOnce = 50;
  static constexpr std::int64_t kHintsMax = 10'000;

  Publisher(const Executor& executor, PublisherParts parts);

  [[nodiscard]] bool essential() const override { return false; }
  // Throws UserError where the file has other keys than the database knows the node by.
  Task<void> start() override;
  Task<void> run() override;

  // On the executor.
  void set_facts(NodeFacts facts);
  // Null before start(). From anywhere.
  [[nodiscard]] std::shared_ptr<const NodeKeys> keys() const { return keys_.load(); }

 private:
  Task<void> round(RoundCause cause) override;
  Task<bool> is_leader(Deadline deadline);
  Task<void> take_keys(Deadline deadline);
  Task<void> publish_changes(const NodeKeys& keys, Deadline deadline);
  Task<void> withdraw(const std::vector<nostr::Event>& events, const nostr::SecretKey& key);
  Task<void> note_hints(const NodeKeys& keys, Deadline deadline);
  Task<void> withdraw_old_keys(const NodeKeys& keys, Deadline deadline);
  Task<void> withdraw_signed_by(const nostr::SecretKey& key, Deadline deadline);
  // Throws when the relay does not take it now.
  Task<void> publish(const nostr::EventDraft& draft, const nostr::SecretKey& key);

  PublisherParts parts_;
  SharedValue<NodeKeys> keys_{nullptr};
  std::unique_ptr<pg::Connection> connection_;  // holds the lock
  bool leads_ = false;
  bool has_noted_ = false;                        // the hints of what was in effect at the start
  metrics::Family<metrics::Counter>& published_;  // todoke_bootstrap_published_total{outcome}
  pg::Listener::Subscription topics_subscription_;
  pg::Listener::Subscription keys_subscription_;
};

}  // namespace todoke::bootstrap
