#include "outbox/log_row.hpp"

namespace todoke::outbox {
namespace {

// FNV-1a: it has to find a missing or a further row, and no adversary.
constexpr std::uint64_t kFnvOffset = 14695981039346656037ULL;
constexpr std::uint64_t kFnvPrime = 1099511628211ULL;

void mix(std::uint64_t& hash, std::string_view bytes) {
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  hash = (hash ^ 0xFFU) * kFnvPrime;  // no byte of UTF-8: where a text ends
}

}  // namespace

std::string_view to_string(Op op) {
  return op == Op::upsert ? "upsert" : "delete";
}

std::vector<LogRow> read_rows(const pg::Result& result) {
  std::vector<LogRow> rows;
  rows.reserve(result.size());
  for (const auto& row : result) {
    LogRow& read = rows.emplace_back();
    read.seq = {row.get<std::int64_t>(0)};
    read.op = row.get<std::string_view>(1) == "upsert" ? Op::upsert : Op::erase;
    read.event_id = row.get<std::string_view>(2);
    read.topic_id = row.get<std::string_view>(3);
    read.kind = row.get<std::int32_t>(4);
    read.created_at = row.get<std::int64_t>(5);
    read.ingested_at = row.get<SystemTime>(6);
    read.effective_key = row.get<std::optional<std::string>>(7);
    read.reason = row.get<std::optional<std::string>>(8);
  }
  return rows;
}

void RowDigest::add(std::int64_t seq, std::string_view op, std::string_view event_id,
                    std::string_view topic_id) {
  auto of_row = kFnvOffset;
  mix(of_row, std::to_string(seq));
  mix(of_row, op);
  mix(of_row, event_id);
  mix(of_row, topic_id);
  hash ^= of_row;
  ++count;
}

RowDigest digest_of(std::span<const LogRow> rows) {
  RowDigest digest;
  for (const auto& row : rows) digest.add(row.seq.value, to_string(row.op), row.event_id, row.topic_id);
  return digest;
}

}  // namespace todoke::outbox
