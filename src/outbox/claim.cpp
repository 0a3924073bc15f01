#include <utility>

#include <fmt/format.h>

#include "base/hash_table.hpp"
#include "outbox/consumer.hpp"
#include "outbox/outbox_sql.hpp"

namespace todoke::outbox {

Task<std::vector<LogRow>> claim(Work work, Once once) {
  std::vector<std::string_view> ids;
  std::vector<std::string_view> topics;
  std::vector<std::string_view> ops;
  std::vector<std::int64_t> seqs;
  for (const auto& row : work.rows) {
    ids.push_back(row.event_id);
    topics.push_back(once == Once::row ? std::string_view(row.topic_id) : std::string_view());
    ops.push_back(once == Once::row ? to_string(row.op) : std::string_view());
    seqs.push_back(row.seq.value);
  }
  pg::Params params(work.consumer, ids, topics, ops, seqs);
  const auto fresh = co_await work.connection.query(sql::kClaimEffects, std::move(params), work.deadline);
  std::vector<LogRow> claimed;
  HashMap<std::string, int> keys;
  for (const auto& row : fresh) {
    keys[fmt::format("{} {} {}", row.get<std::string_view>(0), row.get<std::string_view>(1),
                     row.get<std::string_view>(2))] = 1;
  }
  for (std::size_t i = 0; i < work.rows.size(); ++i) {
    auto& left = keys[fmt::format("{} {} {}", ids[i], topics[i], ops[i])];
    if (left-- > 0) claimed.push_back(work.rows[i]);
  }
  co_return claimed;
}

}  // namespace todoke::outbox
