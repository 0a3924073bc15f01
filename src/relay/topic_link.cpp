#include "relay/topic_link.hpp"

#include <utility>

#include "relay/store_sql.hpp"
#include "relay/topic_link_sql.hpp"

namespace todoke::relay {

Task<LinkPlace> link_some(pg::Connection& connection, std::string topic, LinkPlace place, Deadline deadline) {
  pg::Params params(topic, place.created_at, place.event_id, kLinkedAtOnce);
  pg::Batch batch;
  batch.add(sql::kLockLog, {std::int64_t{0}});
  batch.add(sql::kSkipSeq);
  batch.add(sql::kLinkEvents, std::move(params));
  const auto results = co_await connection.run(std::move(batch), deadline);
  const auto row = results.back().one();
  const auto linked = row.get<std::int64_t>("linked");
  place.linked += linked;
  place.is_end = row.get<std::int64_t>("seen") < kLinkedAtOnce;
  if (const auto last = row.get<std::optional<std::string>>("last_id")) {
    place.event_id = *last;
    place.created_at = row.get<std::int64_t>("last_time");
  }
  if (linked > 0) {
    pg::Params head(std::to_string(row.get<std::int64_t>("head")));
    co_await connection.query(sql::kNotifyOutbox, std::move(head), deadline);
  }
  co_return place;
}

Task<void> mark_ingested(pg::Connection& connection, std::string topic, Deadline deadline) {
  co_await connection.query(sql::kMarkIngested, {topic}, deadline);
}

}  // namespace todoke::relay
