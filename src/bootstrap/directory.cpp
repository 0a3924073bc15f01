#include "bootstrap/directory.hpp"

#include <utility>

#include "bootstrap/bootstrap_sql.hpp"

namespace todoke::bootstrap {
namespace {

SignedEvent signed_event(const pg::Row& row) {
  return {row.get<std::string>("event_id"), row.get<std::string>("json"),
          row.get<std::int64_t>("created_at")};
}

std::vector<SignedEvent> signed_events(const pg::Result& rows) {
  std::vector<SignedEvent> events;
  events.reserve(rows.size());
  for (const auto& row : rows) events.push_back(signed_event(row));
  return events;
}

}  // namespace

Task<std::vector<SignedEvent>> Directory::nodes(Deadline deadline) {
  const auto lease = co_await pool_.acquire(deadline);
  const auto rows = co_await lease->query(sql::kDescriptors, {}, deadline);
  co_return signed_events(rows);
}

Task<std::vector<SignedEvent>> Directory::topic_services(std::string topic, Deadline deadline) {
  const auto lease = co_await pool_.acquire(deadline);
  const auto rows = co_await lease->query(sql::kTopicServices, {topic}, deadline);
  co_return signed_events(rows);
}

Task<Hints> Directory::hints_after(std::int64_t since, std::int32_t most, Deadline deadline) {
  const auto lease = co_await pool_.acquire(deadline);
  const auto rows = co_await lease->query(sql::kHintsAfter, {since, most}, deadline);
  Hints hints{since, {}};
  for (const auto& row : rows) {
    hints.last = row.get<std::int64_t>("seq");
    if (row.get<std::optional<std::string>>("json")) hints.events.push_back(signed_event(row));
  }
  co_return hints;
}

}  // namespace todoke::bootstrap
