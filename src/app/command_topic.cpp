// Which topics the node takes. Changes are seen by running relays at once.
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/topic_ids.hpp"
#include "app/topic_sql.hpp"
#include "base/bytes.hpp"
#include "nostr/topics.hpp"
#include "pg/error.hpp"
#include "relay/config.hpp"

namespace todoke::app {
namespace {

using nostr::TopicId;
using nostr::TopicMapping;

constexpr std::int32_t kListedMax = 10'000;
constexpr std::int64_t kCountedMax = 10'000;

std::string_view yes_no(bool value) {
  return value ? "yes" : "no";
}

Task<void> list_topics(pg::Connection& connection) {
  const auto rows = co_await connection.query(sql::kListTopics, {kListedMax}, answer_deadline());
  print(fmt::format("{:<8} {:<6} {:>11}  {}\n", "enabled", "pinned", "subscribers", "topic"));
  for (const auto& row : rows) {
    const auto policy = row.get<std::string>(4);
    const auto name = row.get<std::optional<std::string>>(5);
    print(fmt::format("{:<8} {:<6} {:>11}  {}{}{}\n", yes_no(row.get<bool>(1)), yes_no(row.get<bool>(2)),
                      row.get<std::int32_t>(3), row.get<std::string>(0), name ? "  " + *name : "",
                      policy == "{}" ? "" : "  " + policy));
  }
  if (rows.size() == static_cast<std::size_t>(kListedMax)) {
    print(fmt::format("(the first {}; the table cn_relay.node_subscriptions has all)\n", kListedMax));
  }
}

Task<void> enable_topics(pg::Connection& connection, std::int64_t enabled_max, std::string text,
                         std::vector<TopicId> ids, std::optional<std::string> policy) {
  const auto deadline = answer_deadline();
  for (const auto& id : ids) {
    const auto name = text == id.text() ? std::nullopt : std::optional(text);
    const auto others = co_await connection.query(sql::kEnabledTopics, {id.text()}, deadline);
    if (others.one().get<std::int64_t>(0) >= enabled_max) {
      throw UserError(fmt::format("{} topics are enabled already: raise topics.enabled_max, or disable one",
                                  enabled_max));
    }
    std::string refused;
    try {
      pg::Params params(id.text(), policy, name);
      co_await connection.query(sql::kEnableTopic, std::move(params), deadline);
    } catch (const pg::Error& error) {
      if (!policy || (!error.is_check_violation() && !error.sqlstate().starts_with("22"))) throw;
      refused = error.is_check_violation()
                    ? error.fields().message
                    : fmt::format("'{}' is no JSON object, such as {{\"retention_days\": 90}}", *policy);
    }
    if (!refused.empty()) throw UserError(fmt::format("--policy: {}", refused));
    print(fmt::format("enabled {}\n", id.text()));
  }
}

Task<void> disable_topics(pg::Connection& connection, std::vector<TopicId> ids) {
  for (const auto& id : ids) {
    const auto rows = co_await connection.query(sql::kDisableTopic, {id.text()}, answer_deadline());
    if (rows.empty()) {
      print(fmt::format("{} was not enabled\n", id.text()));
      continue;
    }
    const auto subscribers = rows.one().get<std::int32_t>(0);
    print(fmt::format(
        "disabled {}{}\n", id.text(),
        subscribers == 0 ? "" : fmt::format(", held off against its {} subscribers", subscribers)));
  }
}

void explain_id(const std::string& text, const TopicId& id) {
  print(fmt::format("topic       {}\n", id.text()));
  if (text != id.text()) print(fmt::format("name        {}\n", text));
  print(fmt::format("gossip      {}\n", to_hex(nostr::gossip_topic_id(id))));
}

Task<void> show_topics(pg::Connection& connection, const Config& config, std::string text,
                       std::vector<TopicId> ids) {
  const auto deadline = answer_deadline();
  for (const auto& id : ids) {
    explain_id(text, id);
    const auto rows = co_await connection.query(sql::kShowTopic, {id.text()}, deadline);
    if (rows.empty()) {
      const bool any = config.get(relay::keys::kAcceptTopics) == "any";
      print(any ? "enabled     yes, as every topic is (relay.accept_topics = any)\n"
                : "enabled     no: it is not listed\n");
    } else {
      const auto row = rows.one();
      const bool pinned = row.get<bool>(2);
      const auto name = row.get<std::optional<std::string>>(7);
      if (name && text == id.text()) print(fmt::format("name        {}\n", *name));
      print(fmt::format("enabled     {}, {}\n", yes_no(row.get<bool>(1)),
                        pinned ? "as the operator decided (pinned)" : "as its subscribers are counted"));
      print(fmt::format("subscribers {}\n", row.get<std::int32_t>(3)));
      print(fmt::format("policy      {}\n", row.get<std::string>(4)));
      print(fmt::format("since       {}, changed {}\n", row.get<std::string>(5), row.get<std::string>(6)));
    }
    pg::Params params(id.text(), kCountedMax);
    const auto events = co_await connection.query(sql::kTopicEvents, std::move(params), deadline);
    const auto count = events.one().get<std::int64_t>(0);
    print(fmt::format("events      {}{}\n", count, count == kCountedMax ? " or more" : ""));
  }
}

void print_ids(const Config& config, const std::string& text, bool quiet) {
  if (quiet) {
    for (const auto& id : topic_ids(config, text)) print(fmt::format("{}\n", id.text()));
    return;
  }
  if (TopicId::from(text, config.get(relay::keys::kReserved))) {
    explain_id(text, topic_id(config, text, TopicMapping::v1));
    return;
  }
  for (const auto mapping : topic_mappings(config)) {
    explain_id(text, topic_id(config, text, mapping));
    print(fmt::format("mapping     {}, network {}\n", mapping == TopicMapping::v1 ? "v1" : "v2",
                      config.get(relay::keys::kNetworkId)));
  }
}

int run_topic(const Arguments& arguments) {
  const auto& words = arguments.words;
  if (words.empty()) throw UsageError("topic: say list, enable, disable, id or show");
  const auto own = load_config(arguments);
  if (words[0] == "list") {
    if (words.size() > 1) throw UsageError("topic list takes no topic");
    with_running_database(own, [](pg::Connection& connection) { return list_topics(connection); });
    return 0;
  }
  const bool known = words[0] == "enable" || words[0] == "disable" || words[0] == "id" || words[0] == "show";
  if (!known) throw UsageError(fmt::format("topic {}: say list, enable, disable, id or show", words[0]));
  if (words.size() != 2)
    throw UsageError(fmt::format("topic {}: name one topic, by its id or its name", words[0]));
  const auto& text = words[1];
  // An id depends on the network that the running node is part of.
  const auto config = node_config(own, arguments);
  if (words[0] == "id") {
    print_ids(config, text, arguments.has("quiet"));
    return 0;
  }
  const auto ids = topic_ids(config, text);
  if (words[0] == "enable") {
    std::optional<std::string> policy;
    if (arguments.has("policy")) policy = arguments.options.at("policy");
    with_running_database(own, [&](pg::Connection& connection) {
      return enable_topics(connection, config.get(relay::keys::kTopicsMax), text, ids, policy);
    });
  } else if (words[0] == "disable") {
    with_running_database(own, [&](pg::Connection& connection) { return disable_topics(connection, ids); });
  } else {
    with_running_database(
        own, [&](pg::Connection& connection) { return show_topics(connection, config, text, ids); });
  }
  return 0;
}

}  // namespace

Command topic_command() {
  return {
      .name = "topic",
      .summary = "list, enable, disable and explain the topics that the node takes",
      .synopsis = "list | enable TOPIC [--policy JSON] | disable TOPIC | id NAME [-q] | show TOPIC",
      .details =
          "TOPIC is a topic id (kukuri:global, kukuri:<64 hex>, kukuri:user:<64 hex>, or one of "
          "topics.reserved) or a name such as Bitcoin, which stands for its id. A running relay sees a "
          "change at once.\n\n"
          "A topic that was enabled here is pinned: it stays enabled whether users subscribe to it or "
          "not. One that was disabled here while users subscribe to it stays disabled.\n\n"
          "--policy sets the ingest_policy, such as '{\"retention_days\": 90, \"priority\": \"high\"}'. Its "
          "keys: retention_days, max_events, max_bytes, max_delay_seconds, allow_backfill, priority (low, "
          "normal, high).",
      .options = {{"policy", "JSON", "the topic's ingest_policy", {"enable"}},
                  {"quiet", "", "the id alone", {"id"}, 'q'}},
      .words_max = 2,
      .run = run_topic,
  };
}

}  // namespace todoke::app
