#include "relay/blocks.hpp"

#include <utility>

#include "pg/transaction.hpp"
#include "relay/blocks_sql.hpp"
#include "relay/store.hpp"
#include "relay/store_sql.hpp"

namespace todoke::relay {
namespace {

Task<std::size_t> erase_event(pg::Connection& connection, std::string id, std::string actor,
                              Deadline deadline) {
  const auto place = co_await connection.query(sql::kPlaceOfEvent, {id}, deadline);
  std::size_t erased = 0;
  if (!place.empty()) {
    EraseKeys keys;
    keys.ids.push_back(place.one().get<std::string>("event_id"));
    keys.times.push_back(place.one().get<SystemTime>("ingested_at"));
    keys.lifetimes.push_back(place.one().get<std::string>("lifetime"));
    const auto log = co_await erase_events(connection, keys, "operator", nostr::Seq{}, deadline);
    erased = log.gone.size();
  }
  pg::Batch work;
  work.add(sql::kBlockAs, {actor});
  work.add(sql::kEventErased, {id});
  work.add(sql::kTellLogHead);
  co_await connection.run(std::move(work), deadline);
  co_return erased;
}

}  // namespace

Task<BlockDone> add_block(pg::Connection& connection, BlockOrder order, Deadline deadline) {
  const bool is_event = order.kind == BlockKind::event;
  const bool waits_for_pass = order.erases && !is_event;
  BlockDone done;
  auto transaction = co_await pg::begin(connection, deadline);
  pg::Batch work(pg::Batch::Mode::plain);
  // The lock first: what is stored before is hidden, what comes after finds the block.
  work.add(sql::kLockLog, {std::int64_t{0}});
  work.add(sql::kBlockAs, {order.actor});
  work.add(sql::kDropOver);
  work.add(sql::kPutBlock, {to_string(order.kind), order.value, order.reason, order.until, waits_for_pass,
                            order.actor, static_cast<std::int64_t>(BlockSet::kBlocksMax)});
  const auto results = co_await connection.run(std::move(work), deadline);
  done.is_full = results.back().empty();
  if (done.is_full) {
    co_await transaction.rollback(deadline);
    co_return done;
  }
  done.was_there = results.back().one().get<bool>("was_there");
  if (is_event) {
    std::vector<std::string> ids;
    ids.push_back(order.value);
    pg::Params params(ids);
    const auto hidden = co_await connection.query(sql::kHideEvents, std::move(params), deadline);
    done.hidden = hidden.size();
    co_await connection.query(sql::kTellLogHead, {}, deadline);
  }
  co_await transaction.commit(deadline);
  if (is_event && order.erases)
    done.erased = co_await erase_event(connection, order.value, order.actor, deadline);
  co_return done;
}

Task<bool> remove_block(pg::Connection& connection, BlockKind kind, std::string value, std::string actor,
                        Deadline deadline) {
  pg::Batch work;
  work.add(sql::kBlockAs, {actor});
  work.add(sql::kRemoveBlock, {to_string(kind), value});
  const auto results = co_await connection.run(std::move(work), deadline);
  co_return !results.back().empty();
}

Task<std::vector<BlockRow>> list_blocks(pg::Connection& connection, std::optional<BlockKind> kind,
                                        const BlockRow* last, std::int64_t rows_max, Deadline deadline) {
  std::optional<std::string> only;
  if (kind) only = to_string(*kind);
  const std::string after_kind(last != nullptr ? to_string(last->kind) : "");
  const std::string after_value = last != nullptr ? last->value : "";
  pg::Params params(only, after_kind, after_value, rows_max);
  const auto rows = co_await connection.query(sql::kListBlocks, std::move(params), deadline);
  std::vector<BlockRow> list;
  for (const auto& row : rows) {
    BlockRow block;
    block.kind = block_kind(row.get<std::string_view>("kind")).value();
    block.value = row.get<std::string>("value");
    block.reason = row.get<std::optional<std::string>>("reason");
    block.until = row.get<std::optional<SystemTime>>("until");
    block.added_at = row.get<SystemTime>("added_at");
    block.added_by = row.get<std::string>("added_by");
    block.erase_at = row.get<std::optional<SystemTime>>("erase_at");
    block.erased_at = row.get<std::optional<SystemTime>>("erased_at");
    block.is_over = row.get<std::optional<bool>>("is_over").value_or(false);
    list.push_back(std::move(block));
  }
  co_return list;
}

Task<std::optional<BlockErasure>> block_erasure(pg::Connection& connection, BlockKind kind, std::string value,
                                                Deadline deadline) {
  pg::Params params(to_string(kind), value);
  const auto rows = co_await connection.query(sql::kBlockErasure, std::move(params), deadline);
  if (rows.empty()) co_return std::nullopt;
  const auto row = rows.one();
  BlockErasure erasure;
  erasure.is_done = row.get<bool>("is_done");
  erasure.pass_under_way = row.get<bool>("under_way");
  erasure.pass = row.get<std::int64_t>("number");
  erasure.next_block = row.get<std::int64_t>("next_block");
  erasure.blocks = row.get<std::int64_t>("blocks");
  co_return erasure;
}

}  // namespace todoke::relay
