#include "outbox/consumer.hpp"

#include "outbox/outbox_sql.hpp"

namespace todoke::outbox {

Task<HashMap<std::string, LoggedEvent>> load_events(pg::Connection& connection, std::span<const LogRow> rows,
                                                    Deadline deadline) {
  std::vector<std::string_view> ids;
  std::vector<SystemTime> times;
  for (const auto& row : rows) {
    if (row.op != Op::upsert) continue;
    ids.push_back(row.event_id);
    times.push_back(row.ingested_at);
  }
  HashMap<std::string, LoggedEvent> events;
  if (ids.empty()) co_return events;
  pg::Params params(ids, times);
  const auto found = co_await connection.query(sql::kEventsOfRows, std::move(params), deadline);
  for (const auto& row : found) {
    auto& event = events[row.get<std::string>(0)];
    event.pubkey = row.get<std::string>(1);
    event.kind = row.get<std::int32_t>(2);
    event.created_at = row.get<std::int64_t>(3);
    event.tags_json = row.get<std::string>(4);
    event.content = row.get<std::string>(5);
    event.topics = row.get<std::vector<std::string>>(6);
    event.non_public = row.get<bool>(7);
    event.has_nul = row.get<bool>(8);
    event.effective = row.get<bool>(9);
  }
  co_return events;
}

}  // namespace todoke::outbox
