// A row of the log as consumers get it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.hpp"
#include "nostr/ids.hpp"
#include "pg/result.hpp"

namespace todoke::outbox {

using nostr::Seq;

enum class Op : std::uint8_t { upsert, erase };

std::string_view to_string(Op op);

struct LogRow {
  Seq seq;
  Op op = Op::upsert;
  std::string event_id;
  std::string topic_id;
  std::int32_t kind = 0;
  std::int64_t created_at = 0;
  SystemTime ingested_at{};
  std::optional<std::string> effective_key;
  std::optional<std::string> reason;
};

// From the columns seq, op, event_id, topic_id, kind, created_at, ingested_at, effective_key, reason, in this
// order.
std::vector<LogRow> read_rows(const pg::Result& result);

// How many rows, and the exclusive or of their hashes: two that agree hold the same rows, in whatever order.
struct RowDigest {
  std::int64_t count = 0;
  std::uint64_t hash = 0;
  void add(std::int64_t seq, std::string_view op, std::string_view event_id, std::string_view topic_id);
  friend bool operator==(const RowDigest&, const RowDigest&) = default;
};
RowDigest digest_of(std::span<const LogRow> rows);

}  // namespace todoke::outbox
