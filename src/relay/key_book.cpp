#include "relay/key_book.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/log.hpp"
#include "pg/channels.hpp"
#include "relay/rights_sql.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kKeysPollEvery(15);
constexpr std::chrono::seconds kKeysReadMax(10);

}  // namespace

bool KeySet::covers(const nostr::Filter& filter) const {
  if (!filter.authors || filter.authors->empty() || filter.seq_after) return false;
  const auto& authors = filter.authors->values();
  return std::all_of(authors.begin(), authors.end(), [this](const auto& key) { return contains(key); });
}

KeyBook::KeyBook(const Executor& executor, pg::Pool& pool, pg::Listener& listener,
                 metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "node keys",
                       .failed = "the keys of the node were not read; the old ones hold",
                       .every = kKeysPollEvery},
                      registry),
      pool_(pool),
      listener_(listener),
      count_(registry.gauge("todoke_node_keys",
                            "Public keys that the node signs with, or has signed with: their events need no "
                            "topic.")),
      keys_(std::make_shared<const KeySet>()) {}

Task<void> KeyBook::start() {
  co_await round(RoundCause::time);
  subscription_ = listener_.subscribe(pg::channels::kKeys, [this](const pg::Wake&) { wake_up(); });
}

Task<void> KeyBook::run() {
  co_await PeriodicService::run();
  subscription_ = {};
}

Task<void> KeyBook::round(RoundCause /*cause*/) {
  const auto deadline = Deadline::after(kKeysReadMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(static_cast<std::int64_t>(KeySet::kKeysMax + 1));
  const auto rows = co_await lease->query(sql::kLoadNodeKeys, std::move(params), deadline);
  HashSet<nostr::Pubkey> keys;
  for (const auto& row : rows) {
    if (keys.size() == KeySet::kKeysMax) break;
    keys.insert(nostr::Pubkey::from_hex(row.get<std::string_view>(0)).value());
  }
  const bool is_full = rows.size() > KeySet::kKeysMax;
  if (is_full && !std::exchange(told_full_, true)) {
    log::warning("node keys", "there are more keys than a relay keeps in memory: the oldest are left out",
                 {{"limit", KeySet::kKeysMax}});
  }
  told_full_ = is_full;
  count_.set(static_cast<double>(keys.size()));
  keys_.store(std::make_shared<const KeySet>(std::move(keys)));
}

}  // namespace todoke::relay
