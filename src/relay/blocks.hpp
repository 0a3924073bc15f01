// What an operator does with blocks: `todoke block`. Each call is one transaction with its row in
// cn_admin.audit, and every relay of the database hears of it.
//
// Blocking an event ends its effect in the same transaction, with `delete` rows in the log (reason operator).
// What is stored of an author or a topic stays, or is erased by the relays (eraser.hpp) where that is asked
// for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "pg/connection.hpp"
#include "relay/block_set.hpp"

namespace todoke::relay {

inline constexpr std::size_t kBlockReasonMax = 1024;  // bytes, as in the table

struct BlockOrder {
  BlockKind kind = BlockKind::pubkey;
  std::string value;  // as block_value gives it
  std::optional<std::string> reason;
  std::optional<SystemTime> until;
  bool erases = false;  // what is stored, too; not for addresses
  std::string actor;    // for the audit
};

struct BlockDone {
  bool is_full = false;    // there are BlockSet::kBlocksMax already; nothing was changed
  bool was_there = false;  // it was blocked before: its reason and its end are changed
  std::size_t hidden = 0;  // events that were here and not deleted
  std::size_t erased = 0;  // events that were erased at once; those of authors and topics are erased later
};
Task<BlockDone> add_block(pg::Connection& connection, BlockOrder order, Deadline deadline);

// False: it was not blocked.
Task<bool> remove_block(pg::Connection& connection, BlockKind kind, std::string value, std::string actor,
                        Deadline deadline);

struct BlockRow {
  BlockKind kind = BlockKind::pubkey;
  std::string value;
  std::optional<std::string> reason;
  std::optional<SystemTime> until;
  SystemTime added_at{};
  std::string added_by;
  std::optional<SystemTime> erase_at;
  std::optional<SystemTime> erased_at;
  bool is_over = false;
};
// A page in the order of kind and value, after `last` (null: from the first).
Task<std::vector<BlockRow>> list_blocks(pg::Connection& connection, std::optional<BlockKind> kind,
                                        const BlockRow* last, std::int64_t rows_max, Deadline deadline);

// How far the erasing of a block has come.
struct BlockErasure {
  bool is_done = false;
  bool pass_under_way = false;
  std::int64_t pass = 0;
  std::int64_t next_block = 0;
  std::int64_t blocks = 0;  // of the pass in all
  friend bool operator==(const BlockErasure&, const BlockErasure&) = default;
};
// Nothing: the block was removed.
Task<std::optional<BlockErasure>> block_erasure(pg::Connection& connection, BlockKind kind, std::string value,
                                                Deadline deadline);

}  // namespace todoke::relay
