#include "relay/rights_book.hpp"

#include <algorithm>
#include <utility>

#include "base/attempt.hpp"
#include "pg/channels.hpp"
#include "relay/rights_sql.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kRightsPollEvery(30);
constexpr std::chrono::seconds kRightsReadMax(10);

HashSet<std::string> set_of(std::vector<std::string> texts) {
  return {std::make_move_iterator(texts.begin()), std::make_move_iterator(texts.end())};
}

RightsPtr rights_of(const pg::Row& row) {
  return std::make_shared<const Rights>(Rights{row.get<bool>("is_disabled"), row.get<bool>("lacks_consent"),
                                               set_of(row.get<std::vector<std::string>>("topics")),
                                               set_of(row.get<std::vector<std::string>>("searched"))});
}

}  // namespace

void KeyRights::put(RightsPtr value, std::uint64_t asked) {
  const std::lock_guard lock(mutex_);
  if (asked < asked_) return;
  asked_ = asked;
  value_.store(std::move(value));
}

RightsBook::RightsBook(const Executor& executor, pg::Pool& pool, pg::Listener& listener,
                       metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "rights",
                       .failed = "what people may do was not read; what was known holds",
                       .every = kRightsPollEvery},
                      registry),
      pool_(pool),
      listener_(listener),
      watched_(registry.gauge("todoke_rights_watched",
                              "Public keys whose rights are kept, because a connection has proven them.")) {}

KeyRightsPtr RightsBook::watch(const nostr::Pubkey& key) {
  const std::lock_guard lock(mutex_);
  auto& known = keys_[key];
  auto rights = known.lock();
  if (!rights) {
    rights = std::make_shared<KeyRights>(key);
    known = rights;
  }
  return rights;
}

Task<void> RightsBook::load(KeyList keys) {
  const auto asked = ++asked_;
  const auto lease = co_await pool_.acquire(Deadline::after(kRightsReadMax));
  co_await read(*lease, std::move(keys), asked);
}

Task<void> RightsBook::read(pg::Connection& connection, KeyList keys, std::uint64_t asked) {
  HashMap<std::string, KeyRightsPtr> by_hex;
  std::vector<std::string> hexes;
  for (auto& key : keys) {
    hexes.push_back(key->key().hex());
    by_hex.emplace(hexes.back(), std::move(key));
  }
  pg::Params params(hexes, kTopicsMax);
  const auto rows =
      co_await connection.query(sql::kLoadRights, std::move(params), Deadline::after(kRightsReadMax));
  for (const auto& row : rows) by_hex.at(row.get<std::string>("pubkey"))->put(rights_of(row), asked);
}

Task<bool> RightsBook::spend_search(nostr::Pubkey key, std::string request) {
  const auto deadline = Deadline::after(kRightsReadMax);
  const auto lease = co_await pool_.acquire(deadline);
  pg::Params params(key.hex(), request);
  const auto spent = co_await lease->query(sql::kSpendSearch, std::move(params), deadline);
  co_return spent.one().get<bool>(0);
}

Task<void> RightsBook::start() {
  subscription_ = listener_.subscribe(pg::channels::kRights, [this](const pg::Wake& wake) { note(wake); });
  co_return;
}

Task<void> RightsBook::run() {
  co_await PeriodicService::run();
  subscription_ = {};
}

void RightsBook::note(const pg::Wake& wake) {
  {
    const std::lock_guard lock(mutex_);
    const auto key = nostr::Pubkey::from_hex(wake.payload);
    if (!key) {
      all_changed_ = true;
    } else if (keys_.contains(*key)) {
      changed_.insert(*key);
    } else {
      return;
    }
  }
  wake_up();
}

// Those to be read again. Forgets the keys that nobody watches.
KeyList RightsBook::stale(RoundCause cause) {
  const std::lock_guard lock(mutex_);
  const bool is_all = std::exchange(all_changed_, false) || cause == RoundCause::time;
  const auto changed = std::exchange(changed_, {});
  KeyList stale;
  std::erase_if(keys_, [&](const auto& entry) {
    auto rights = entry.second.lock();
    if (!rights) return true;
    if (is_all || changed.contains(entry.first)) stale.push_back(std::move(rights));
    return false;
  });
  watched_.set(static_cast<double>(keys_.size()));
  return stale;
}

Task<void> RightsBook::round(RoundCause cause) {
  const auto keys = stale(cause);
  if (keys.empty()) co_return;
  const auto asked = ++asked_;
  const auto read_all = [&]() -> Task<void> {
    const auto lease = co_await pool_.acquire(Deadline::after(kRightsReadMax));
    for (std::size_t first = 0; first < keys.size(); first += kKeysOfQuery) {
      const auto last = std::min(first + kKeysOfQuery, keys.size());
      co_await read(*lease,
                    KeyList(keys.begin() + static_cast<std::ptrdiff_t>(first),
                            keys.begin() + static_cast<std::ptrdiff_t>(last)),
                    asked);
    }
  };
  const auto done = co_await attempt(read_all());
  if (!done) {
    // What was announced is not forgotten.
    {
      const std::lock_guard lock(mutex_);
      all_changed_ = true;
    }
    wake_up();
    std::rethrow_exception(done.error());
  }
  if (on_change_) on_change_();
}

}  // namespace todoke::relay
