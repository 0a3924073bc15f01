// Services with their health and live configuration, consumers of the log, background jobs.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "admin/changes_sql.hpp"
#include "admin/lists_sql.hpp"
#include "admin/routes.hpp"
#include "admin/service_configs.hpp"
#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "outbox/admin.hpp"

namespace todoke::admin {
namespace {

constexpr std::int64_t kVersionMax = 1'000'000'000'000;
constexpr std::int64_t kSeqMax = 9'007'199'254'740'991;

// The keys of a service that the database may set.
std::vector<const KeySpec*> live_keys(const Config& config, std::string_view service) {
  std::vector<const KeySpec*> keys;
  for (const auto& [name, spec] : config.schema().keys()) {
    if (spec->live && service_of(name) == service) keys.push_back(spec);
  }
  return keys;
}

ConfigRow row_of(const std::vector<ConfigRow>& rows, const std::string& service) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ConfigRow& row) { return row.service == service; });
  return found == rows.end() ? ConfigRow{service, 0, {}} : *found;
}

void write_values(JsonWriter& json, const std::map<std::string, std::string, std::less<>>& values) {
  json.begin_object();
  for (const auto& [key, value] : values) json.member(key, value);
  json.end_object();
}

std::string config_json(const Config& config, const ConfigRow& row) {
  JsonWriter json;
  json.begin_object().member("service", row.service).member("version", row.version).key("config");
  write_values(json, row.values);
  json.key("keys").begin_array();
  for (const auto* spec : live_keys(config, row.service)) {
    json.begin_object().member("key", spec->name).member("value", config.shown(spec->name));
    json.member("source", config.setting(spec->name).source).member("pinned", config.is_pinned(spec->name));
    json.member("fallback", spec->fallback).member("allowed", allowed_values(*spec));
    json.member("meaning", spec->meaning).end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

Task<net::Response> list_services(Desk& desk, const api::Call& /*call*/) {
  const auto deadline = answer_within();
  std::vector<ConfigRow> rows;
  {
    const auto lease = co_await desk.pool.acquire(deadline);
    rows = co_await read_service_configs(*lease, deadline);
  }
  JsonWriter json;
  json.begin_object().member("status", to_string(desk.health.overall())).key("services").begin_array();
  for (const auto& line : desk.health.lines()) {
    json.begin_object().member("service", line.name).member("state", to_string(line.health.state));
    json.member("essential", line.essential).member("detail", line.health.detail).end_object();
  }
  json.end_array().key("configs").begin_array();
  for (const auto& [service, seed] : service_config_seeds(desk.live.config())) {
    json.begin_object()
        .member("service", service)
        .member("version", row_of(rows, service).version)
        .end_object();
  }
  json.end_array().end_object();
  co_return api::answer(api::status::kOk, std::move(json).text());
}

net::Response no_such_service() {
  return api::failure(api::status::kNotFound, "NOT_FOUND",
                      "no key of that service can be changed while it runs");
}

Task<net::Response> show_config(Desk& desk, const api::Call& call) {
  const auto service = call.text("service");
  if (live_keys(desk.live.config(), service).empty()) co_return no_such_service();
  const auto deadline = answer_within();
  const auto lease = co_await desk.pool.acquire(deadline);
  const auto rows = co_await read_service_configs(*lease, deadline);
  co_return api::answer(api::status::kOk, config_json(desk.live.config(), row_of(rows, service)));
}

using Values = std::map<std::string, std::string, std::less<>>;

// As the database has it: every value a text, in the form that `todoke config set` gives it.
Checked<Values> values_in(const Config& config, const std::string& service, const JsonValue& asked) {
  Values values;
  for (std::size_t i = 0; i < asked.names.size(); ++i) {
    const auto& key = asked.names[i];
    const auto field = path_of("config", key);
    const auto* spec = config.schema().find(key);
    if (spec == nullptr || !spec->live || service_of(key) != service)
      return bad_field(field, "is no key of this service that can be changed while it runs");
    const auto& value = asked.values[i];
    const bool is_text = value.is(JsonValue::Kind::string) || value.is(JsonValue::Kind::number);
    if (!is_text && !value.is(JsonValue::Kind::boolean))
      return bad_field(field, "must be a text, a number or a boolean");
    const auto parsed = parse_value(*spec, is_text ? value.text : value.flag ? "true" : "false");
    if (!parsed) return bad_field(field, "can't be that: " + parsed.error().message);
    values.emplace(key, format_value(*spec, *parsed));
  }
  return values;
}

// A key that a flag or the environment sets can't be changed here.
std::optional<std::string> pinned_change(const Config& config, const std::string& service,
                                         const Values& before, const Values& after) {
  const auto value_in = [](const Values& values, std::string_view key) {
    const auto found = values.find(key);
    return found == values.end() ? std::optional<std::string>() : std::optional(found->second);
  };
  for (const auto* spec : live_keys(config, service)) {
    if (config.is_pinned(spec->name) && value_in(before, spec->name) != value_in(after, spec->name))
      return std::string(spec->name);
  }
  return std::nullopt;
}

// What the whole would be refused for; empty: nothing.
std::string contradiction(const Desk& desk, std::vector<ConfigRow> rows, const ConfigRow& changed) {
  LiveConfig before(desk.live.base());
  before.set_rows(rows);
  std::erase_if(rows, [&](const ConfigRow& row) { return row.service == changed.service; });
  rows.push_back(changed);
  LiveConfig after(desk.live.base());
  after.set_rows(rows);
  for (const auto& problem : after.problems()) {
    if (std::find(before.problems().begin(), before.problems().end(), problem) == before.problems().end())
      return problem;
  }
  return {};
}

net::Response pinned_answer(const Desk& desk, const std::string& key) {
  JsonWriter details;
  details.begin_object()
      .member("key", key)
      .member("source", desk.live.config().setting(key).source)
      .end_object();
  return api::failure(api::status::kConflict, "PINNED",
                      fmt::format("{} is set by {}, which wins over the database", key,
                                  desk.live.config().setting(key).source),
                      details.text());
}

Task<net::Response> put_config(Desk& desk, const api::Call& call) {
  const auto service = call.text("service");
  const auto& config = desk.live.config();
  if (live_keys(config, service).empty()) co_return no_such_service();
  auto values = values_in(config, service, *call.body.member("config"));
  if (!values) co_return api::invalid(values.error());
  const auto expected = body_integer(call, "expected_version").value_or(0);
  const auto deadline = answer_within();
  std::vector<ConfigRow> rows;
  {
    const auto lease = co_await desk.pool.acquire(deadline);
    rows = co_await read_service_configs(*lease, deadline);
  }
  const auto own = row_of(rows, service);
  if (own.version == expected) {
    if (const auto pinned = pinned_change(config, service, own.values, *values))
      co_return pinned_answer(desk, *pinned);
    ConfigRow changed{service, expected, *values};
    if (const auto problem = contradiction(desk, rows, changed); !problem.empty())
      co_return api::invalid({"config", problem});
  }
  JsonWriter json;
  write_values(json, *values);
  pg::Params params(service, expected, json.text());
  co_return co_await answer_change(desk, call, sql::kReplaceServiceConfig, std::move(params));
}

api::Parameter service_name() {
  return api::in_path("service",
                      api::text_up_to(64, "Such as relay: what stands before the dot of its keys."));
}

}  // namespace

Routes service_routes(Desk& desk) {
  return {read_route(desk,
                     {"/services", "listServices", "services",
                      "The services of this process with their health, "
                      "and those whose configuration can be changed while they run."},
                     {}, list_services),
          read_route(desk,
                     {"/services/{service}/config", "getServiceConfig", "services",
                      "What the database says of the "
                      "service's keys, and what is in force."},
                     {service_name()}, show_config),
          change_route(
              desk, "PUT",
              {"/services/{service}/config", "putServiceConfig", "services",
               "Replaces what the database says of the service's keys, where it is still at the "
               "expected version (0: it says nothing yet); else 409 VERSION_MISMATCH. A key that "
               "a flag or the environment sets is 409 PINNED. Every node follows at once."},
              kOperators, {service_name()},
              api::named(
                  "ServiceConfig",
                  api::object_of({{"expected_version", api::integer_from(0, kVersionMax, "As it was read.")},
                                  {"config", api::any_object("Values by key, such as relay.name.")}})),
              put_config)};
}

// ---------------------------------------------------------------------------------------------- consumers

namespace {

api::Parameter consumer_name() {
  return api::in_path("name", api::text_up_to(200, "Of the consumer."));
}

// What the consumer is now, or the refusal.
Task<net::Response> consumer_after(Desk& desk, const api::Call& call, Expected<void> done) {
  if (!done) co_return refused("REFUSED", done.error());
  pg::Params params(call.text("name"), std::optional<std::string>(), std::int64_t{1});
  co_return co_await answer_item(desk, sql::kListConsumers, std::move(params));
}

Task<bool> has_consumer(pg::Connection& connection, const api::Call& call, Deadline deadline) {
  const auto known = co_await outbox::list_consumers(connection, call.text("name"), deadline);
  co_return !known.empty();
}

net::Response no_such_consumer() {
  return api::failure(api::status::kNotFound, "NOT_FOUND", "there is no such consumer");
}

template <class Work>
Task<net::Response> change_consumer(Desk& desk, const api::Call& call, const Work& work) {
  Expected<void> done;
  const auto change = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
    if (!co_await has_consumer(connection, call, deadline)) co_return no_such_consumer();
    done = co_await work(connection, deadline);
    co_return net::Response();
  };
  auto answer = co_await answer_by(desk, call, change);
  if (answer.status == api::status::kNotFound) co_return answer;
  co_return co_await consumer_after(desk, call, std::move(done));
}

DeskHandler pausing(bool paused) {
  return [paused](Desk& desk, const api::Call& call) -> Task<net::Response> {
    const auto work = [&](pg::Connection& connection, Deadline deadline) {
      return outbox::set_paused(connection, call.text("name"), paused, deadline);
    };
    co_return co_await change_consumer(desk, call, work);
  };
}

Task<net::Response> rebuild(Desk& desk, const api::Call& call) {
  const auto work = [&](pg::Connection& connection, Deadline deadline) {
    return outbox::ask_for_rebuild(connection, call.text("name"), deadline);
  };
  co_return co_await change_consumer(desk, call, work);
}

Task<net::Response> replay(Desk& desk, const api::Call& call) {
  outbox::ReplayPoint point;
  point.after_seq = body_integer(call, "after_seq");
  if (const auto since = call.body_text("since")) {
    const auto time = parse_timestamp(*since);
    if (!time) co_return api::invalid({"since", "must be a time that there is"});
    point.since = seconds_in(time->time_since_epoch());
  }
  const auto work = [&](pg::Connection& connection, Deadline deadline) -> Task<Expected<void>> {
    const auto moved = co_await outbox::replay(connection, call.text("name"), point, deadline);
    if (!moved) co_return refuse(moved.error().message);
    co_return Expected<void>();
  };
  co_return co_await change_consumer(desk, call, work);
}

using LetterWork = Task<std::size_t> (*)(pg::Connection&, std::string, std::optional<std::int64_t>, Deadline);

DeskHandler letter_change(LetterWork work) {
  return [work](Desk& desk, const api::Call& call) -> Task<net::Response> {
    const auto change = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
      const auto rows = co_await work(connection, call.text("name"), body_integer(call, "seq"), deadline);
      JsonWriter json;
      json.begin_object().member("rows", rows).end_object();
      co_return api::answer(api::status::kOk, std::move(json).text());
    };
    co_return co_await answer_by(desk, call, change);
  };
}

}  // namespace

Routes consumer_routes(Desk& desk) {
  const std::string_view tag = "consumers";
  const auto letters = api::named(
      "DeadLetters",
      api::object_of({{"seq", api::nullable(api::integer_from(0, kSeqMax, "One row; all without it.")),
                       api::Needed::optional}}));
  const auto point = api::named(
      "ReplayPoint",
      api::with_one_of(
          api::object_of(
              {{"after_seq", api::integer_from(0, kSeqMax, "Go on after this row."), api::Needed::optional},
               {"since", api::formatted(api::kTimestamp, "Repeat what the log says since then."),
                api::Needed::optional}}),
          {"after_seq", "since"}));
  return {
      read_route(desk,
                 {"/consumers", "listConsumers", tag, "Who follows the log, and how far behind they are."},
                 with_page({}),
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_page(at, call, sql::kListConsumers, {std::optional<std::string>()}, 1);
                 }),
      read_route(desk, {"/consumers/{name}", "getConsumer", tag, "One, with the progress of its rebuild."},
                 {consumer_name()},
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_item(at, sql::kListConsumers,
                                      {call.text("name"), std::optional<std::string>(), std::int64_t{1}});
                 }),
      change_route(desk, "POST", {"/consumers/{name}/pause", "pauseConsumer", tag, "Holds it where it is."},
                   kOperators, {consumer_name()}, std::nullopt, pausing(true)),
      change_route(desk, "POST", {"/consumers/{name}/resume", "resumeConsumer", tag, "Lets it go on."},
                   kOperators, {consumer_name()}, std::nullopt, pausing(false)),
      change_route(desk, "POST",
                   {"/consumers/{name}/replay", "replayConsumer", tag, "Goes back, or forward, in the log."},
                   kOperators, {consumer_name()}, point, replay),
      change_route(desk, "POST",
                   {"/consumers/{name}/rebuild", "rebuildConsumer", tag,
                    "Makes what it derives anew; getConsumer shows how far it is."},
                   kOperators, {consumer_name()}, std::nullopt, rebuild),
      read_route(
          desk, {"/consumers/{name}/dead-letters", "listDeadLetters", tag, "Rows that kept failing."},
          [] {
            auto all = with_page({});
            all.insert(all.begin(), consumer_name());
            return all;
          }(),
          [](Desk& at, const api::Call& call) -> Task<net::Response> {
            return answer_page(at, call, sql::kListDeadLetters, {call.text("name")}, 1);
          }),
      change_route(desk, "POST",
                   {"/consumers/{name}/dead-letters/retry", "retryDeadLetters", tag, "Tries them again."},
                   kOperators, {consumer_name()}, letters, letter_change(outbox::retry_dead_letters)),
      change_route(desk, "POST",
                   {"/consumers/{name}/dead-letters/drop", "dropDeadLetters", tag, "Forgets them."},
                   kOperators, {consumer_name()}, letters, letter_change(outbox::drop_dead_letters))};
}

// ---------------------------------------------------------------------------------------------- jobs

namespace {

api::Parameter job_id() {
  return api::in_path("id", api::integer_from(1, kSeqMax, "Of the job."));
}

Task<net::Response> list_jobs(Desk& desk, const api::Call& call) {
  pg::Params params(call.text_if("status"), call.text_if("kind"), is_oldest_first(call));
  co_return co_await answer_page(desk, call, sql::kListJobs, std::move(params), 1);
}

}  // namespace

Routes job_routes(Desk& desk) {
  const auto list = with_page({api::in_query("status", api::choice_of({"pending", "running", "failed",
                                                                       "succeeded", "aborted", "cancelled"},
                                                                      "Only those.")),
                               api::in_query("kind", api::text_up_to(64, "Only those."))},
                              true);
  return {read_route(desk, {"/jobs", "listJobs", "jobs", "Background jobs with their progress."}, list,
                     list_jobs),
          read_route(desk, {"/jobs/{id}", "getJob", "jobs", "One job."}, {job_id()},
                     [](Desk& at, const api::Call& call) -> Task<net::Response> {
                       return answer_item(at, sql::kShowJob, {call.integer_or("id", 0)});
                     }),
          change_route(desk, "POST",
                       {"/jobs/{id}/cancel", "cancelJob", "jobs",
                        "Ends the job: at once where it waits, else at its next piece of work."},
                       kOperators, {job_id()}, std::nullopt,
                       [](Desk& at, const api::Call& call) -> Task<net::Response> {
                         return answer_change(at, call, sql::kCancelJob, {call.integer_or("id", 0)});
                       })};
}

}  // namespace todoke::admin
