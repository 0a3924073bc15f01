#include "relay/block_book.hpp"

#include <string>
#include <utility>

#include "base/log.hpp"
#include "pg/channels.hpp"
#include "relay/blocks_sql.hpp"

namespace todoke::relay {
namespace {

constexpr std::chrono::seconds kBlocksPollEvery(15);
constexpr std::chrono::seconds kBlocksReadMax(30);
// Some milliseconds of the executor.
constexpr std::int64_t kBlocksPage = 1'000;

}  // namespace

BlockBook::BlockBook(const Executor& executor, pg::Pool& pool, pg::Listener& listener,
                     metrics::Registry& registry)
    : PeriodicService(executor,
                      {.name = "blocks",
                       .failed = "the operator's blocks were not read; the old ones hold",
                       .every = kBlocksPollEvery},
                      registry),
      pool_(pool),
      listener_(listener),
      count_(registry.gauges("todoke_blocks", "What the operator keeps out, by what it is.", {"kind"})),
      blocks_(std::make_shared<const BlockSet>()) {}

Task<void> BlockBook::start() {
  co_await round(RoundCause::time);
  subscription_ = listener_.subscribe(pg::channels::kBlocks, [this](const pg::Wake&) { wake_up(); });
}

Task<void> BlockBook::run() {
  co_await PeriodicService::run();
  subscription_ = {};
}

Task<void> BlockBook::round(RoundCause /*cause*/) {
  auto set = co_await read();
  auto fresh = std::make_shared<const BlockSet>(std::move(set));
  for (const auto kind : {BlockKind::pubkey, BlockKind::event, BlockKind::ip, BlockKind::topic}) {
    count_.with({std::string(to_string(kind))}).set(static_cast<double>(fresh->size(kind)));
  }
  const bool has_new_addresses = !fresh->has_same_addresses(*blocks_.load());
  blocks_.store(std::move(fresh));
  if (has_new_addresses && on_addresses_) on_addresses_();
}

Task<BlockSet> BlockBook::read() {
  const auto deadline = Deadline::after(kBlocksReadMax);
  const auto lease = co_await pool_.acquire(deadline);
  BlockSet set;
  std::size_t unreadable = 0;
  std::string kind;
  std::string value;
  bool is_full = false;
  for (bool more = true; more && !is_full;) {
    pg::Params params(kind, value, kBlocksPage);
    const auto rows = co_await lease->query(sql::kLoadBlocks, std::move(params), deadline);
    for (const auto& row : rows) {
      is_full = set.size() >= BlockSet::kBlocksMax;
      if (is_full) break;
      kind = row.get<std::string>("kind");
      value = row.get<std::string>("value");
      const auto known = block_kind(kind);
      const auto until = row.get<std::optional<SystemTime>>("until");
      if (!known || !set.add(*known, value, until)) ++unreadable;
    }
    more = rows.size() == static_cast<std::size_t>(kBlocksPage);
  }
  tell_left_out(is_full, unreadable);
  co_return set;
}

void BlockBook::tell_left_out(bool is_full, std::size_t unreadable) {
  if (is_full && !std::exchange(told_full_, true)) {
    log::warning("blocks", "there are more blocks than a relay keeps in memory: the last ones are left out",
                 {{"limit", BlockSet::kBlocksMax}});
  }
  told_full_ = is_full;
  if (unreadable > 0 && unreadable != told_unreadable_) {
    log::error("blocks", "rows of cn_relay.blocks can't be read and block nothing", {{"rows", unreadable}});
  }
  told_unreadable_ = unreadable;
}

}  // namespace todoke::relay
