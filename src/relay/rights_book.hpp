// What the people who are connected may do (rights.hpp), as the database says. A session watches the keys
// that its connection has proven and reads the value without waiting; the book reads those of all watched
// keys again when NOTIFY names them, and all of them every half minute. No event and no question costs a
// query.
//
// Bounded: keys that a connection watches (16 for each), each with kTopicsMax topics; queries by
// kKeysOfQuery keys. A key is forgotten when nobody watches it any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/hash_table.hpp"
#include "base/metrics.hpp"
#include "base/periodic.hpp"
#include "base/shared_value.hpp"
#include "nostr/ids.hpp"
#include "pg/listener.hpp"
#include "pg/pool.hpp"
#include "relay/rights.hpp"

namespace todoke::relay {

// The rights of one key, now. Thread-safe.
class KeyRights {
 public:
  explicit KeyRights(const nostr::Pubkey& key) : key_(key) {}

  [[nodiscard]] const nostr::Pubkey& key() const { return key_; }
  // Null: not read yet.
  [[nodiscard]] RightsPtr value() const { return value_.load(); }

 private:
  friend class RightsBook;
  // What was asked for later is newer, however long its answer takes.
  void put(RightsPtr value, std::uint64_t asked);

  const nostr::Pubkey key_;
  SharedValue<Rights> value_{nullptr};
  std::mutex mutex_;
  std::uint64_t asked_ = 0;  // of the value
};
using KeyRightsPtr = std::shared_ptr<KeyRights>;
using KeyList = std::vector<KeyRightsPtr>;

class RightsBook final : public PeriodicService {
 public:
  static constexpr std::int64_t kTopicsMax = 10'000;
  static constexpr std::size_t kKeysOfQuery = 500;

  RightsBook(const Executor& executor, pg::Pool& pool, pg::Listener& listener, metrics::Registry& registry);

  // These are thread-safe.
  KeyRightsPtr watch(const nostr::Pubkey& key);
  // Reads them now; throws what the database throws.
  Task<void> load(KeyList keys);
  // Counts a search of a key. False: its plan allows no more today. Throws what the database throws.
  Task<bool> spend_search(nostr::Pubkey key, std::string request);

  // Called on the executor after keys were read again. To be set before start().
  void on_change(std::function<void()> callback) { on_change_ = std::move(callback); }

  Task<void> start() override;
  Task<void> run() override;

 private:
  Task<void> round(RoundCause cause) override;
  void note(const pg::Wake& wake);
  [[nodiscard]] KeyList stale(RoundCause cause);
  Task<void> read(pg::Connection& connection, KeyList keys, std::uint64_t asked);

  pg::Pool& pool_;
  pg::Listener& listener_;
  metrics::Gauge& watched_;  // todoke_rights_watched
  pg::Listener::Subscription subscription_;
  std::function<void()> on_change_;
  std::atomic<std::uint64_t> asked_ = 0;

  std::mutex mutex_;
  HashMap<nostr::Pubkey, std::weak_ptr<KeyRights>> keys_;
  HashSet<nostr::Pubkey> changed_;
  bool all_changed_ = false;
};

}  // namespace todoke::relay
