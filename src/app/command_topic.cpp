// Manages which topics the node takes. Running relays see changes at once.
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "admin/topics.hpp"
#include "app/commands.hpp"
#include "app/connection_in_use.hpp"
#include "app/effective_config.hpp"
#include "app/node_options.hpp"
#include "app/retention_periods.hpp"
#include "app/topic_ids.hpp"
#include "app/topic_sql.hpp"
#include "base/bytes.hpp"
#include "base/json_writer.hpp"
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

std::string limit_text(const std::optional<std::int64_t>& limit) {
  return limit ? std::to_string(*limit) : "any number of";
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

// Pressure 3 by backlog: a further topic would mean further rows for consumers that are far behind already.
Task<void> refuse_under_pressure(pg::Connection& connection, outbox::PressureThresholds thresholds,
                                 std::string topic_id) {
  const auto rows = co_await connection.query(sql::kMandatoryBacklog, {topic_id}, answer_deadline());
  const auto backlog = rows.one().get<std::int64_t>("rows");
  const bool is_enabled = rows.one().get<bool>("is_enabled");
  if (is_enabled || outbox::next_pressure(0, backlog, thresholds) < outbox::kPressureMax) co_return;
  throw UserError(fmt::format(
      "no further topic is enabled while a mandatory consumer of the log is so far behind ({} rows, "
      "pressure 3): see `todoke consumers list`",
      backlog));
}

Task<void> enable_topics(pg::Connection& connection, const Config& config, std::string text,
                         std::vector<TopicId> ids, std::optional<std::string> policy) {
  const auto deadline = answer_deadline();
  const auto enabled_max = config.get(relay::keys::kTopicsMax);
  for (const auto& id : ids) {
    co_await refuse_under_pressure(connection, pressure_thresholds(config), id.text());
    const auto name = text == id.text() ? std::nullopt : std::optional(text);
    if (co_await admin::count_other_topics(connection, id.text(), deadline) >= enabled_max) {
      throw UserError(fmt::format("{} topics are enabled already: raise topics.enabled_max, or disable one",
                                  enabled_max));
    }
    std::string refused;
    try {
      if (policy) co_await refuse_policy(connection, config, id.text(), *policy);
      co_await admin::enable_topic(connection, id.text(), policy, name, deadline);
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

// {"retention_days": 90, "priority": null} of retention_days=90 priority=
std::string changes_of(const std::vector<std::string>& words) {
  JsonWriter json;
  json.begin_object();
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format("topic policy: '{}' is not key=value", word));
    json.key(word.substr(0, equals));
    const auto value = word.substr(equals + 1);
    const bool is_number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
    if (value.empty()) {
      json.raw("null");
    } else if (value == "true" || value == "false" || is_number) {
      json.raw(value);
    } else {
      json.value(value);
    }
  }
  json.end_object();
  return std::move(json).text();
}

Task<void> change_policies(pg::Connection& connection, const Config& config, std::vector<TopicId> ids,
                           std::string changes, bool as_json) {
  const auto deadline = answer_deadline();
  for (const auto& id : ids) {
    pg::Params merged(id.text(), changes);
    const auto rows = co_await connection.query(sql::kMergedPolicy, std::move(merged), deadline);
    if (rows.empty()) throw UserError(fmt::format("{} is not listed: enable it first", id.text()));
    const auto policy = rows.one().get<std::string>(0);
    const auto problem = rows.one().get<std::optional<std::string>>(1);
    if (problem) throw UserError(fmt::format("ingest_policy of {}: {}", id.text(), *problem));
    if (changes != "{}") {
      co_await refuse_policy(connection, config, id.text(), policy);
      pg::Params params(id.text(), changes);
      co_await connection.query(sql::kChangePolicy, std::move(params), deadline);
    }
    print(as_json ? policy + "\n" : fmt::format("policy of {}: {}\n", id.text(), policy));
  }
}

Task<void> disable_topics(pg::Connection& connection, std::vector<TopicId> ids) {
  for (const auto& id : ids) {
    const auto state = co_await admin::disable_topic(connection, id.text(), answer_deadline());
    if (!state) {
      print(fmt::format("{} was not enabled\n", id.text()));
      continue;
    }
    const auto subscribers = state->subscribers;
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
    const auto usage = co_await connection.query(sql::kTopicUsage, {id.text()}, deadline);
    const auto row = usage.one();
    print(fmt::format("stored      {} of {} events, {} of {} bytes\n", row.get<std::int64_t>("events"),
                      limit_text(row.get<std::optional<std::int64_t>>("events_max")),
                      row.get<std::int64_t>("bytes"),
                      limit_text(row.get<std::optional<std::int64_t>>("bytes_max"))));
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
  if (words.empty()) throw UsageError("topic: say list, enable, policy, disable, id or show");
  if (words[0] == "list") {
    if (words.size() > 1) throw UsageError("topic list takes no topic");
    with_running_database(command_config(arguments),
                          [](pg::Connection& connection) { return list_topics(connection); });
    return 0;
  }
  const bool known = words[0] == "policy" || words[0] == "enable" || words[0] == "disable" ||
                     words[0] == "id" || words[0] == "show";
  if (!known)
    throw UsageError(fmt::format("topic {}: say list, enable, policy, disable, id or show", words[0]));
  if (words.size() < 2 || (words.size() > 2 && words[0] != "policy"))
    throw UsageError(fmt::format("topic {}: name one topic, by its id or its name", words[0]));
  const auto& text = words[1];
  // An id depends on the network that the running node is part of.
  const auto config = command_config(arguments);
  if (words[0] == "id") {
    print_ids(config, text, arguments.has("quiet"));
    return 0;
  }
  const auto ids = topic_ids(config, text);
  if (words[0] == "enable") {
    std::optional<std::string> policy;
    if (arguments.has("policy")) policy = arguments.options.at("policy");
    with_running_database(config, [&](pg::Connection& connection) {
      return enable_topics(connection, config, text, ids, policy);
    });
  } else if (words[0] == "policy") {
    auto changes = changes_of({words.begin() + 2, words.end()});
    with_running_database(config, [&](pg::Connection& connection) {
      return change_policies(connection, config, ids, changes, arguments.has("json"));
    });
  } else if (words[0] == "disable") {
    with_running_database(config,
                          [&](pg::Connection& connection) { return disable_topics(connection, ids); });
  } else {
    with_running_database(
        config, [&](pg::Connection& connection) { return show_topics(connection, config, text, ids); });
  }
  return 0;
}

}  // namespace

Command topic_command() {
  return {
      .name = "topic",
      .summary = "list, enable, disable and explain the topics that the node takes",
      .synopsis =
          "list | enable TOPIC [--policy JSON] | policy TOPIC [KEY=VALUE…] [--json] | disable TOPIC | id "
          "NAME [-q] | show TOPIC",
      .details =
          "TOPIC is a topic id (kukuri:global, kukuri:<64 hex>, kukuri:user:<64 hex>, or one of "
          "topics.reserved) or a name such as Bitcoin, which stands for its id. A running relay sees a "
          "change at once.\n\n"
          "A topic that was enabled here is pinned: it stays enabled whether users subscribe to it or "
          "not. One that was disabled here while users subscribe to it stays disabled.\n\n"
          "--policy sets the ingest_policy, such as '{\"retention_days\": 90, \"priority\": \"high\"}'. Its "
          "keys: retention_days, superseded_days, deletion_days, tombstone_days, dedupe_days "
          "(docs/retention.md), max_events, max_bytes, max_delay_seconds, allow_backfill, priority (low, "
          "normal, high), when_full (refuse, drop_oldest). policy shows it, or changes the keys that are "
          "named and leaves the others; KEY= "
          "takes one "
          "away.",
      .options = {{"policy", "JSON", "the topic's ingest_policy", {"enable"}},
                  {"json", "", "the policy alone, as JSON", {"policy"}},
                  {"quiet", "", "the id alone", {"id"}, 'q'}},
      .words_max = 12,
      .run = run_topic,
  };
}

}  // namespace todoke::app
