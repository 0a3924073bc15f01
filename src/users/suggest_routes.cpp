// Communities that a caller may like.
#include <utility>

#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "users/discovery_sql.hpp"
#include "users/door.hpp"
#include "users/json_parts.hpp"
#include "users/routes.hpp"
#include "users/topic_schema.hpp"

namespace todoke::users {
namespace {

constexpr std::int64_t kSuggestMax = 20;
constexpr std::int64_t kNameMax = 200;

Task<net::Response> suggest(const Desk& desk, const api::Call& call) {
  std::string name;
  if (const auto asked = call.text_if("q"); asked && !asked->empty()) {
    const auto normal = nostr::normal_topic_name(*asked);
    if (!normal) co_return api::invalid({"q", "is no name: " + normal.error().message});
    name = *normal;
  }
  pg::Params params(call.caller.name, name, call.integer_or("limit", kSuggestMax));
  const auto rows = co_await desk.ask(sql::kSuggestTopics, std::move(params));
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (const auto& row : rows) {
    json.begin_object().member("topic_id", row.get<std::string>("topic_id"));
    write_or_null(json, "name", row.get<std::optional<std::string>>("name"));
    json.member("score", row.get<double>("score"))
        .member("contacts", row.get<std::int64_t>("contacts"))
        .member("is_subscribed", row.get<bool>("is_subscribed"))
        .end_object();
  }
  json.end_array().end_object();
  co_return api::answer(api::status::kOk, std::move(json).text());
}

api::Schema suggestion_schema() {
  return api::named(
      "Suggestion",
      api::object_of(
          {{"topic_id", topic_schema("The topic.")},
           {"name", api::nullable(api::text_up_to(1'024, "Its name, where it is known."))},
           {"score", api::number("From 0 to 1.")},
           {"contacts", api::integer_from(0, 100, "Contacts of the caller who wrote there lately.")},
           {"is_subscribed", api::boolean("Whether the caller has a subscription to it.")}}));
}

}  // namespace

void add_suggest_routes(Routes& routes, const DeskPtr& desk) {
  routes.push_back(
      {.method = "GET",
       .path = "/communities/suggest",
       .name = "suggestCommunities",
       .tag = "discovery",
       .meaning = "Topics of this node by their name, and by where the caller's contacts (kind 3) write.",
       .access = &access::kMember,
       .parameters = {api::in_query("q",
                                    api::text_up_to(kNameMax, "A name, or the beginning or a part of one.")),
                      api::in_query("limit",
                                    api::integer_from(1, kSuggestMax, "How many; 20 unless given."))},
       .answers = {{.meaning = "The best first.",
                    .body = api::object_of(
                        {{"items", api::list_of(suggestion_schema(), kSuggestMax, "They.")}})}},
       .handler = at(desk, suggest)});
}

}  // namespace todoke::users
