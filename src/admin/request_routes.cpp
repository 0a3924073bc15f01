// Subscription requests and the topics that the node takes.
#include <utility>

#include "admin/changes_sql.hpp"
#include "admin/lists_sql.hpp"
#include "admin/routes.hpp"
#include "admin/topics.hpp"
#include "api/answers.hpp"
#include "base/json_writer.hpp"
#include "nostr/topics.hpp"
#include "relay/config.hpp"
#include "relay/retention.hpp"

namespace todoke::admin {
namespace {

// Four bytes each fit into the column.
constexpr std::int64_t kNoteMax = 500;

api::Parameter request_id() {
  return api::in_path("id", api::formatted(api::kUuid, "Of the request."));
}

api::Schema review_schema() {
  return api::named("Review", api::object_of({{"review_note",
                                               api::nullable(api::text_up_to(kNoteMax,
                                                                             "For the "
                                                                             "one who asked.")),
                                               api::Needed::optional}}));
}

Task<net::Response> approve(Desk& desk, const api::Call& call) {
  const auto topics_max = static_cast<std::int32_t>(desk.live.config().get(relay::keys::kTopicsMax));
  pg::Params params(call.text("id"), call.body_text("review_note"), call.caller.name, topics_max);
  co_return co_await answer_change(desk, call, sql::kApproveRequest, std::move(params));
}

Task<net::Response> reject(Desk& desk, const api::Call& call) {
  pg::Params params(call.text("id"), call.body_text("review_note"), call.caller.name);
  co_return co_await answer_change(desk, call, sql::kRejectRequest, std::move(params));
}

Task<net::Response> list_requests(Desk& desk, const api::Call& call) {
  pg::Params params(call.text_if("status"), call.text_if("topic_id"), call.text_if("pubkey"),
                    is_oldest_first(call));
  co_return co_await answer_page(desk, call, sql::kListRequests, std::move(params), 2);
}

}  // namespace

Routes request_routes(Desk& desk) {
  const auto list = with_page(
      {api::in_query("status", api::choice_of({"pending", "approved", "rejected", "active", "cancelled"},
                                              "Only those.")),
       api::in_query("topic_id", api::text_up_to(1'024, "Only those for the topic.")),
       api::in_query("pubkey", api::formatted(api::kHexKey, "Only those of this key."))},
      true);
  return {
      read_route(desk,
                 {"/subscription-requests", "listSubscriptionRequests", "subscriptions",
                  "What people asked the node to carry."},
                 list, list_requests),
      read_route(desk,
                 {"/subscription-requests/{id}", "getSubscriptionRequest", "subscriptions", "One request."},
                 {request_id()},
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_item(at, sql::kShowRequest, {call.text("id")});
                 }),
      change_route(desk, "POST",
                   {"/subscription-requests/{id}/approve", "approveSubscriptionRequest", "subscriptions",
                    "Approves a pending request: its author subscribes, and the "
                    "node takes the topic in. 409 where it is decided already or can't be."},
                   kModerators, {request_id()}, review_schema(), approve),
      change_route(desk, "POST",
                   {"/subscription-requests/{id}/reject", "rejectSubscriptionRequest", "subscriptions",
                    "Rejects a pending request."},
                   kModerators, {request_id()}, review_schema(), reject)};
}

namespace {

api::Parameter topic_id() {
  return api::in_path("topic_id", api::text_up_to(1'024, "kukuri:… or a reserved one."));
}

Expected<std::string> canonical_topic(Desk& desk, const std::string& text) {
  const auto id = nostr::TopicId::from(text, desk.live.config().get(relay::keys::kReserved));
  if (!id) return refuse("must be a topic id");
  return id->text();
}

// Topics may be kept longer than the node's own periods say; the database knows.
Task<std::optional<std::string>> policy_problem(Desk& desk, std::string topic, std::string policy) {
  const auto periods = relay::retention_periods_from(desk.live.config());
  const auto deadline = answer_within();
  const auto lease = co_await desk.pool.acquire(deadline);
  const auto before = co_await relay::period_problems(*lease, periods, std::nullopt, std::nullopt, deadline);
  const auto after =
      co_await relay::period_problems(*lease, periods, std::move(topic), std::move(policy), deadline);
  const auto more = relay::new_problems(before, after);
  if (more.empty()) co_return std::nullopt;
  co_return relay::period_text(more);
}

Task<net::Response> set_policy(Desk& desk, const api::Call& call) {
  const auto policy = body_json(call, "ingest_policy");
  pg::Params params(call.text("topic_id"), policy);
  if (const auto problem = co_await policy_problem(desk, call.text("topic_id"), policy))
    co_return api::invalid({"ingest_policy", *problem});
  co_return co_await answer_change(desk, call, sql::kSetIngestPolicy, std::move(params));
}

std::string state_json(const std::string& topic, const TopicState& state) {
  JsonWriter json;
  json.begin_object().member("topic_id", topic).member("enabled", state.enabled);
  json.member("pinned", state.pinned).member("ref_count", state.subscribers);
  json.key("ingest_policy").raw(state.ingest_policy).key("name");
  if (state.name) {
    json.value(*state.name);
  } else {
    json.null();
  }
  json.end_object();
  return std::move(json).text();
}

Task<net::Response> enable(Desk& desk, const api::Call& call) {
  const auto id = canonical_topic(desk, call.text("topic_id"));
  if (!id) co_return api::invalid({"topic_id", id.error().message});
  const auto topics_max = desk.live.config().get(relay::keys::kTopicsMax);
  const auto work = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
    if (co_await count_other_topics(connection, *id, deadline) >= topics_max)
      co_return api::failure(api::status::kConflict, "NODE_TOPIC_LIMIT_REACHED",
                             "topics.enabled_max are enabled");
    const auto state = co_await enable_topic(connection, *id, std::nullopt, call.body_text("name"), deadline);
    co_return api::answer(api::status::kOk, state_json(*id, state));
  };
  co_return co_await answer_by(desk, call, work);
}

using TopicWork = Task<std::optional<TopicState>> (*)(pg::Connection&, std::string, Deadline);

DeskHandler topic_change(TopicWork change) {
  return [change](Desk& desk, const api::Call& call) -> Task<net::Response> {
    const auto work = [&](pg::Connection& connection, Deadline deadline) -> Task<net::Response> {
      const auto state = co_await change(connection, call.text("topic_id"), deadline);
      if (!state)
        co_return api::failure(api::status::kNotFound, "NOT_FOUND", "the node does not know the topic");
      co_return api::answer(api::status::kOk, state_json(call.text("topic_id"), *state));
    };
    co_return co_await answer_by(desk, call, work);
  };
}

Task<net::Response> list_topics(Desk& desk, const api::Call& call) {
  const auto enabled = call.text_if("enabled");
  pg::Params params(enabled ? std::optional(*enabled == "true") : std::optional<bool>());
  co_return co_await answer_page(desk, call, sql::kListNodeSubscriptions, std::move(params), 1);
}

}  // namespace

Routes topic_routes(Desk& desk) {
  const std::string_view tag = "node-subscriptions";
  return {
      read_route(desk,
                 {"/node-subscriptions", "listNodeSubscriptions", tag,
                  "The topics that the node knows, with "
                  "what they hold."},
                 with_page({api::in_query("enabled", api::choice_of({"true", "false"}, "Only those."))}),
                 list_topics),
      read_route(desk, {"/node-subscriptions/{topic_id}", "getNodeSubscription", tag, "One topic."},
                 {topic_id()},
                 [](Desk& at, const api::Call& call) -> Task<net::Response> {
                   return answer_item(at, sql::kShowNodeSubscription, {call.text("topic_id")});
                 }),
      change_route(desk, "PUT",
                   {"/node-subscriptions/{topic_id}/ingest-policy", "setIngestPolicy", tag,
                    "Replaces the topic's ingest_policy. Relays follow at once."},
                   kOperators, {topic_id()},
                   api::named("IngestPolicy",
                              api::object_of(
                                  {{"ingest_policy", api::any_object("As `todoke topic policy` has it.")}})),
                   set_policy),
      change_route(
          desk, "POST",
          {"/node-subscriptions/{topic_id}/enable", "enableTopic", tag, "Takes the topic in and pins it."},
          kOperators, {topic_id()},
          api::named("EnableTopic", api::object_of({{"name", api::nullable(api::text_up_to(250, "Its name.")),
                                                     api::Needed::optional}})),
          enable),
      change_route(desk, "POST",
                   {"/node-subscriptions/{topic_id}/disable", "disableTopic", tag,
                    "Takes no more events of the topic; pinned against its subscribers."},
                   kOperators, {topic_id()}, std::nullopt, topic_change(disable_topic)),
      change_route(desk, "POST",
                   {"/node-subscriptions/{topic_id}/unpin", "unpinTopic", tag,
                    "The topic follows the number of its subscribers again."},
                   kOperators, {topic_id()}, std::nullopt, topic_change(unpin_topic))};
}

}  // namespace todoke::admin
