// Takes events from a file into the store as a relay takes them from its clients: the same rules, topics,
// duplicates, versions, deletions, rows in the log, and the source `import` or `backfill`. For a process of
// its own, beside relays on the same database or without any: the log's lock puts all writers in line, and
// relays hear of the rows as of those of another relay, so their subscribers get them live.
//
// These rules don't hold for an import: rate limits, logins, and the lower bounds of created_at
// (relay.created_at_past_max and a topic's max_delay_seconds): it brings old events. The upper bound holds.
// The limits of single topics hold; what the whole node may hold is the relays' to watch.
//
//   check() ──▶ offer() ──▶ Writer ──commit──▶ on_outcome
//
// Bounded: some 2,500 events wait for their commit; then offer() waits. Where the database has no room, what
// waits fails at once (Outcome::storage_full): a caller holds its events back as long as the storage is full.
#pragma once

#include <exception>
#include <memory>
#include <string_view>
#include <tl/expected.hpp>

#include "base/config.hpp"
#include "base/metrics.hpp"
#include "nostr/event_parse.hpp"
#include "nostr/rules.hpp"
#include "outbox/log_signal.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "pg/storage.hpp"
#include "relay/admission.hpp"
#include "relay/block_book.hpp"
#include "relay/key_book.hpp"
#include "relay/topic_book.hpp"
#include "relay/writer.hpp"

namespace todoke::relay {

struct ImportParts {
  const Config& config;
  const Clock& clock;
  Executor executor;
  pg::Pool& pool;          // for the set of topics, the blocks and the node's keys
  pg::Listener& listener;  // need not run: they are also looked at every few seconds
  pg::ConnectOptions database;
  metrics::Registry& metrics;
  pg::Storage& storage;  // told of a database without room; somebody else finds out when it has room again
  bool checks_signatures = true;
  Source source = Source::import;  // or backfill
};

class Import final : private CommitListener {
 public:
  explicit Import(const ImportParts& parts);
  ~Import() override;

  // Throws what the database throws.
  Task<void> start();
  [[nodiscard]] std::shared_ptr<const TopicSet> topics() const { return topics_.topics(); }
  // The event in a text, if it may be stored; otherwise why not, in the words of docs/relay.md. From any
  // thread: takes 50 us, most of it for the signature.
  [[nodiscard]] tl::expected<Incoming, std::string_view> check(std::string_view text) const;
  // Its on_outcome is called after its commit, on the executor. Waits while too many events are under way.
  Task<void> offer(Incoming incoming);
  // Until everything is committed or has failed. No offer() after it.
  Task<void> finish();

 private:
  void lost_effect(const std::vector<Gone>&) override {}
  void appended(const Appended& log, std::vector<LiveEventPtr>) override { head_ = log.head; }
  void restored() override {}
  [[nodiscard]] nostr::Seq head() const override { return head_; }

  const Clock& clock_;
  const bool checks_signatures_;
  const Source source_;
  nostr::RuleSettings rules_;
  nostr::EventLimits limits_;
  RelayMetrics metrics_;
  DedupeCounts duplicates_;
  outbox::LogSignal log_;
  TopicBook topics_;
  BlockBook blocks_;
  KeyBook keys_;
  Writer writer_;
  KnownIds none_;  // nothing is remembered: the store says what is there
  nostr::Seq head_;
  Signal room_;
  Signal topics_over_;
  Signal blocks_over_;
  Signal keys_over_;
  Signal writer_over_;
  std::exception_ptr writer_failure_;
};

}  // namespace todoke::relay
