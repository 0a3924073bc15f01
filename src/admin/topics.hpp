// What an operator decides about a topic of the node. For commands and the API: one statement each, audited
// by a trigger, and followed by relays at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "pg/connection.hpp"

namespace todoke::admin {

struct TopicState {
  bool enabled = false;
  bool pinned = false;  // the operator decided: it does not follow the number of its subscribers
  std::int32_t subscribers = 0;
  std::string ingest_policy;  // JSON
  std::optional<std::string> name;
};

// How many others are enabled: no more than topics.enabled_max may be.
Task<std::int64_t> count_other_topics(pg::Connection& connection, std::string topic, Deadline deadline);

// Takes the topic in, and pins it. Without a policy or a name it keeps those that it has. Throws pg::Error
// (a check violation) for a policy that is none.
Task<TopicState> enable_topic(pg::Connection& connection, std::string topic,
                              std::optional<std::string> policy, std::optional<std::string> name,
                              Deadline deadline);
// Nothing: the node does not know it.
Task<std::optional<TopicState>> disable_topic(pg::Connection& connection, std::string topic,
                                              Deadline deadline);
// It follows the number of its subscribers again. Nothing: the node does not know it.
Task<std::optional<TopicState>> unpin_topic(pg::Connection& connection, std::string topic, Deadline deadline);

}  // namespace todoke::admin
