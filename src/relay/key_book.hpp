// The public keys that the node signs with, or has signed with (cn_bootstrap.keys), as this process knows
// them. What they sign needs no topic, and a filter for nothing but them needs no `#t`
// (docs/bootstrap.md). Follows the table: woken by NOTIFY, and by a look every few seconds. Readers get an
// immutable set and never wait.
//
// Bounded: KeySet::kKeysMax, the newest; what is beyond is left out, which the log says.
#pragma once

#include <cstddef>
#include <memory>

#include "base/hash_table.hpp"
#include "base/metrics.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "nostr/filter.hpp"
#include "nostr/ids.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"

namespace todoke::relay {

class KeySet {
 public:
  // A node has a handful; each rotation leaves as many behind, as long as they have events.
  static constexpr std::size_t kKeysMax = 1'000;

  KeySet() = default;
  explicit KeySet(HashSet<nostr::Pubkey> keys) : keys_(std::move(keys)) {}

  [[nodiscard]] bool contains(const nostr::Pubkey& key) const { return keys_.contains(key); }
  // Whether a filter asks for events of these keys alone, newest first: those are found without a topic.
  [[nodiscard]] bool covers(const nostr::Filter& filter) const;
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  HashSet<nostr::Pubkey> keys_;
};

class KeyBook final : public PeriodicService {
 public:
  KeyBook(const Executor& executor, pg::Pool& pool, pg::Listener& listener, metrics::Registry& registry);

  // Thread-safe.
  [[nodiscard]] std::shared_ptr<const KeySet> keys() const { return keys_.load(); }

  Task<void> start() override;
  Task<void> run() override;

 private:
  Task<void> round(RoundCause cause) override;

  pg::Pool& pool_;
  pg::Listener& listener_;
  metrics::Gauge& count_;  // todoke_node_keys
  pg::Listener::Subscription subscription_;
  SharedValue<KeySet> keys_;
  bool told_full_ = false;
};

}  // namespace todoke::relay
