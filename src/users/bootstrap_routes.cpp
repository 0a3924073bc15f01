// What the node says of itself, for clients that look for one: signed events as they are in effect.
#include <algorithm>
#include <utility>

#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "users/door.hpp"
#include "users/event_json.hpp"
#include "users/rights.hpp"
#include "users/routes.hpp"
#include "users/topic_schema.hpp"

namespace todoke::users {
namespace {

using Entries = std::vector<BootstrapSource::Entry>;

constexpr std::chrono::seconds kBootstrapMaxAge(300);
constexpr std::int64_t kEntriesMax = 1'000;
constexpr std::int64_t kSinceMax = 9'007'199'254'740'991;
constexpr int kNothingNew = 204;
constexpr int kUnchanged = 304;

std::optional<SystemTime> newest_of(const Entries& entries) {
  if (entries.empty()) return std::nullopt;
  const auto newest = std::max_element(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.created_at < b.created_at;
  });
  return SystemTime(std::chrono::seconds(newest->created_at));
}

void write_entries(JsonWriter& json, const Entries& entries) {
  json.key("items").begin_array();
  for (const auto& entry : entries) json.raw(entry.event);
  json.end_array();
}

net::Response list_of_entries(const api::Call& call, const Entries& entries) {
  JsonWriter json;
  json.begin_object();
  write_entries(json, entries);
  json.end_object();
  return api::answer_to_caches(call.request, std::move(json).text(), newest_of(entries), kBootstrapMaxAge);
}

Task<net::Response> tell_nodes(const Desk& desk, const api::Call& call) {
  const auto& source = desk.ports().bootstrap;
  if (!source) co_return not_available("bootstrap");
  const auto entries = co_await source->nodes(Deadline::after(kCallMax));
  co_return list_of_entries(call, entries);
}

Task<net::Response> tell_services(const Desk& desk, const api::Call& call) {
  const auto& source = desk.ports().bootstrap;
  if (!source) co_return not_available("bootstrap");
  const auto topic = topic_id_in(desk, call.text("topic"), "topic");
  if (!topic) co_return api::invalid(topic.error());
  const auto entries = co_await source->topic_services(*topic, Deadline::after(kCallMax));
  co_return list_of_entries(call, entries);
}

Task<net::Response> tell_hints(const Desk& desk, const api::Call& call) {
  const auto& source = desk.ports().bootstrap;
  if (!source) co_return not_available("bootstrap");
  const auto hints = co_await source->hints_after(call.integer_or("since", 0), Deadline::after(kCallMax));
  if (hints.entries.empty()) co_return api::no_content();
  JsonWriter json;
  json.begin_object().member("last", hints.last);
  write_entries(json, hints.entries);
  json.end_object();
  co_return api::answer_to_caches(call.request, std::move(json).text(), newest_of(hints.entries),
                                  kBootstrapMaxAge);
}

api::Schema entries_schema() {
  return api::list_of(given_event(), kEntriesMax, "Signed by the node's key.");
}

std::vector<api::Answer> cached(api::Schema body) {
  return {{.meaning = "With ETag and Last-Modified.", .body = std::move(body)},
          {.status = kUnchanged, .meaning = "The caller has it already."}};
}

}  // namespace

void add_bootstrap_routes(Routes& routes, const DeskPtr& desk) {
  routes.push_back({.method = "GET",
                    .path = "/bootstrap/nodes",
                    .name = "getNodes",
                    .tag = "bootstrap",
                    .meaning = "The node's descriptor (kind 39000).",
                    .access = &access::kOpen,
                    .answers = cached(api::object_of({{"items", entries_schema()}})),
                    .failures = {kNotAvailable},
                    .handler = at(desk, tell_nodes)});
  routes.push_back({.method = "GET",
                    .path = "/bootstrap/topics/{topic}/services",
                    .name = "getTopicServices",
                    .tag = "bootstrap",
                    .meaning = "What the node does for a topic (kind 39001).",
                    .access = &access::kOpen,
                    .parameters = {api::in_path("topic", topic_schema("The topic."))},
                    .answers = cached(api::object_of({{"items", entries_schema()}})),
                    .failures = {kNotAvailable},
                    .handler = at(desk, tell_services)});
  auto answers =
      cached(api::object_of({{"last", api::integer_from(0, kSinceMax, "The `since` of the next question.")},
                             {"items", entries_schema()}}));
  answers.push_back({.status = kNothingNew, .meaning = "Nothing new."});
  routes.push_back({.method = "GET",
                    .path = "/bootstrap/hints/latest",
                    .name = "getHints",
                    .tag = "bootstrap",
                    .meaning = "What the node has published of itself since a place, oldest first.",
                    .access = &access::kOpen,
                    .parameters = {api::in_query(
                        "since", api::integer_from(0, kSinceMax, "`last` of the answer before."))},
                    .answers = std::move(answers),
                    .failures = {kNotAvailable},
                    .handler = at(desk, tell_hints)});
}

}  // namespace todoke::users
