// Search of a topic, and what is trending there: events by rank, as they are in effect now.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "base/timestamp.hpp"
#include "users/door.hpp"
#include "users/event_json.hpp"
#include "users/json_parts.hpp"
#include "users/rights.hpp"
#include "users/routes.hpp"
#include "users/topic_schema.hpp"

namespace todoke::users {
namespace {

namespace status = api::status;

constexpr std::int64_t kSearchTextMax = 256;
constexpr std::int64_t kSearchDefault = 20;
constexpr std::int64_t kSearchMax = 100;
// The index ranks from 0 to this.
constexpr double kRankMax = 1e9;

outbox::SearchRequest request_of(const api::Call& call, const std::string& topic) {
  outbox::SearchRequest request;
  request.text = call.text_if("q").value_or("");
  request.topics = std::vector<std::string>{topic};
  request.limit = static_cast<std::size_t>(call.integer_or("limit", kSearchDefault));
  request.cursor = call.text_if("cursor").value_or("");
  return request;
}

// What the index refuses is named by the parameter that it can only be.
net::Response refused_search(const api::Call& call, const std::string& why) {
  const auto* field = call.text_if("cursor") ? "cursor" : "q";
  return api::invalid({field, why});
}

struct Found {
  outbox::SearchResult result;
  std::string refused;
};

Task<Found> find_in(outbox::SearchPort& search, outbox::SearchRequest request) {
  Found found;
  try {
    found.result = co_await search.find(std::move(request), Deadline::after(kCallMax));
  } catch (const UserError& error) {
    found.refused = error.what();
  }
  co_return found;
}

Task<net::Response> search_topic(const Desk& desk, const api::Call& call) {
  const auto& ports = desk.ports();
  if (!ports.search || !ports.events) co_return not_available("search");
  const auto topic = topic_id_in(desk, call.text("topic"), "topic");
  if (!topic) co_return api::invalid(topic.error());
  auto refused = co_await spend_for_topic(desk, call, *topic, service::kIndex, metric::kSearch);
  if (refused) co_return std::move(*refused);
  const auto found = co_await find_in(*ports.search, request_of(call, *topic));
  if (!found.refused.empty()) co_return refused_search(call, found.refused);
  const auto events = co_await ports.events->read(found.result.ids, Deadline::after(kCallMax));
  JsonWriter json;
  json.begin_object().key("items").begin_array();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events[i]) continue;
    json.begin_object().key("event").raw(*events[i]);
    json.member("score", static_cast<double>(found.result.ranks.at(i)) / kRankMax).end_object();
  }
  json.end_array();
  write_next_cursor(json, found.result.cursor);
  json.end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

void write_trends(JsonWriter& json, const std::vector<Trend>& trends,
                  const std::vector<std::optional<std::string>>& events) {
  json.key("items").begin_array();
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events[i]) continue;
    json.begin_object().key("event").raw(*events[i]);
    json.member("score", trends[i].score)
        .member("replies", trends[i].replies)
        .member("reactions", trends[i].reactions)
        .member("reposts", trends[i].reposts)
        .end_object();
  }
  json.end_array();
}

std::vector<Trend> trends_of(const Trends* book, const std::string& topic, std::size_t limit) {
  if (book == nullptr) return {};
  const auto found = book->by_topic.find(topic);
  if (found == book->by_topic.end()) return {};
  auto trends = found->second;
  trends.resize(std::min(trends.size(), limit));
  return trends;
}

Task<net::Response> tell_trending(const Desk& desk, const api::Call& call,
                                  std::shared_ptr<const Trends> book) {
  if (!desk.ports().events) co_return not_available("trends");
  const auto topic = topic_id_in(desk, call.text("topic"), "topic");
  if (!topic) co_return api::invalid(topic.error());
  auto refused = co_await spend_for_topic(desk, call, *topic, service::kIndex, metric::kTrending);
  if (refused) co_return std::move(*refused);
  const auto limit = static_cast<std::size_t>(call.integer_or("limit", kSearchDefault));
  const auto trends = trends_of(book.get(), *topic, limit);
  std::vector<std::string> ids;
  for (const auto& trend : trends) ids.push_back(trend.event_id);
  const auto events = co_await desk.ports().events->read(std::move(ids), Deadline::after(kCallMax));
  JsonWriter json;
  json.begin_object();
  write_trends(json, trends, events);
  write_or_null(json, "computed_at", book ? std::optional(book->computed_at) : std::nullopt);
  json.end_object();
  co_return api::answer(status::kOk, std::move(json).text());
}

api::Schema hit_schema() {
  return api::named("SearchHit", api::object_of({{"event", given_event()},
                                                 {"score", api::number("From 0 to 1: relevance and age.")}}));
}

api::Schema trend_schema() {
  const auto count = [](std::string_view meaning) { return api::integer_from(0, 1'000'000'000, meaning); };
  return api::named("Trend", api::object_of({{"event", given_event()},
                                             {"score", api::number("Above 0; the higher the more.")},
                                             {"replies", count("By different people.")},
                                             {"reactions", count("By different people.")},
                                             {"reposts", count("By different people.")}}));
}

api::Parameter topic_parameter() {
  return api::in_query("topic", topic_schema("The topic, by its id."), api::Needed::always);
}

}  // namespace

void add_search_routes(Routes& routes, const DeskPtr& desk, std::shared_ptr<TrendBook> book) {
  routes.push_back(
      {.method = "GET",
       .path = "/search",
       .name = "search",
       .tag = "discovery",
       .meaning =
           "Searches the posts of a topic, the best first. Needs an active subscription to it with the "
           "service index. Counts as index.search_requests, once for an X-Request-Id.",
       .access = &access::kMember,
       .parameters = {topic_parameter(),
                      api::in_query("q", api::text_up_to(kSearchTextMax, "Words; without them everything.")),
                      api::in_query("limit", api::integer_from(1, kSearchMax, "How many; 20 unless given.")),
                      cursor_parameter()},
       .answers = {{.meaning = "A page. It may be short and have a next one.",
                    .body = page_of(hit_schema(), "The hits.")}},
       .failures = {kSubscriptionRequired, kQuotaExceeded, kNotAvailable},
       .handler = at(desk, search_topic)});
  routes.push_back(
      {.method = "GET",
       .path = "/trending",
       .name = "getTrending",
       .tag = "discovery",
       .meaning = "What people reply to, react to and repost in a topic. Needs an active subscription to it "
                  "with the service index. Counts as index.trending_requests.",
       .access = &access::kMember,
       .parameters = {topic_parameter(),
                      api::in_query("limit", api::integer_from(1, kTrendsMax, "How many; 20 unless given."))},
       .answers = {{.meaning = "The best first.",
                    .body = api::object_of(
                        {{"items", api::list_of(trend_schema(), kTrendsMax, "They.")},
                         {"computed_at", api::nullable(api::formatted(
                                             api::kTimestamp, "Since when it stands; null: not yet."))}})}},
       .failures = {kSubscriptionRequired, kQuotaExceeded, kNotAvailable},
       .handler = [desk, book = std::move(book)](const api::Call& call) {
         return tell_trending(*desk, call, book->load());
       }});
}

}  // namespace todoke::users
