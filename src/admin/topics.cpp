#include "admin/topics.hpp"

#include <utility>

#include "admin/topics_sql.hpp"

namespace todoke::admin {
namespace {

TopicState topic_state(const pg::Row& row) {
  TopicState state;
  state.enabled = row.get<bool>(0);
  state.pinned = row.get<bool>(1);
  state.subscribers = row.get<std::int32_t>(2);
  state.ingest_policy = row.get<std::string>(3);
  state.name = row.get<std::optional<std::string>>(4);
  return state;
}

Task<std::optional<TopicState>> change_topic(pg::Connection& connection, pg::Statement statement,
                                             std::string topic, Deadline deadline) {
  pg::Params params(topic);
  const auto rows = co_await connection.query(statement, std::move(params), deadline);
  if (rows.empty()) co_return std::nullopt;
  co_return topic_state(rows.one());
}

}  // namespace

Task<std::int64_t> count_other_topics(pg::Connection& connection, std::string topic, Deadline deadline) {
  pg::Params params(topic);
  const auto rows = co_await connection.query(sql::kCountOtherTopics, std::move(params), deadline);
  co_return rows.one().get<std::int64_t>(0);
}

Task<TopicState> enable_topic(pg::Connection& connection, std::string topic,
                              std::optional<std::string> policy, std::optional<std::string> name,
                              Deadline deadline) {
  pg::Params params(topic, policy, name);
  const auto rows = co_await connection.query(sql::kEnableTopic, std::move(params), deadline);
  co_return topic_state(rows.one());
}

Task<std::optional<TopicState>> disable_topic(pg::Connection& connection, std::string topic,
                                              Deadline deadline) {
  return change_topic(connection, sql::kDisableTopic, std::move(topic), deadline);
}

Task<std::optional<TopicState>> unpin_topic(pg::Connection& connection, std::string topic,
                                            Deadline deadline) {
  return change_topic(connection, sql::kUnpinTopic, std::move(topic), deadline);
}

}  // namespace todoke::admin
